import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { MongoClient } from 'mongodb';
import { onBenchExit } from '../bench-folder.ts';
import { loadByMetrics, type ProcessMetrics, type ServerLoad } from './server-load.ts';

/** Where the service keeps its log and its views. */
export interface BenchServers {
  /** The settings that a process needs for them. */
  readonly settings: Readonly<Record<string, string>>;
  /**
   * The requests to the servers so far; null without servers. Stand-ins count them; for real servers, the processes do.
   */
  load(processes: readonly ProcessMetrics[]): Promise<ServerLoad | null>;
  close(): Promise<void>;
}

/** The embedded stores of one folder, which all processes share. */
export const embedded: BenchServers = {
  settings: {},
  load: async () => null,
  close: async () => undefined,
};

/**
 * The servers that `SVC_TEST_ESDB_URL` and `SVC_TEST_MONGODB_URL` name. A stand-in replaces each one that is not set.
 * The log of a real EventStoreDB should be empty, as each process reads all of it. In MongoDB, a new database is used,
 * and dropped at the end.
 */
export async function openServers(): Promise<BenchServers> {
  const { SVC_TEST_ESDB_URL: log, SVC_TEST_MONGODB_URL: views } = process.env;
  const eventStore = log === undefined ? await StandIn.start('eventstoredb') : undefined;
  const mongo = views === undefined ? await StandIn.start('mongodb') : undefined;
  const database = `bench-${process.pid}-${Date.now()}`;
  const viewsUrl = withDatabase(views ?? mongo?.url ?? '', database);
  return {
    settings: {
      SVC_EVENT_STORE_URL: log ?? eventStore?.url ?? '',
      SVC_READ_MODEL_URL: viewsUrl,
      JWT_SECRET_KEY: 'the same for all processes of the benchmark',
    },
    async load(processes) {
      return {
        ...loadByMetrics(processes),
        ...(await eventStore?.load()),
        ...(await mongo?.load()),
      };
    },
    async close() {
      await Promise.all([eventStore?.stop(), mongo?.stop()]);
      if (views !== undefined) await dropDatabase(viewsUrl, database);
    },
  };
}

/** Replaces the database of a connection string. Signing in still uses the original database, or `admin`. */
function withDatabase(url: string, database: string): string {
  const [, start = url, path = '', options = ''] =
    /^(mongodb(?:\+srv)?:\/\/[^/?]+)(?:\/([^?]*))?(\?.*)?$/.exec(url) ?? [];
  const signsIn = start.includes('@') && !/[?&]authSource=/i.test(options);
  const source = signsIn ? `${options === '' ? '?' : '&'}authSource=${path || 'admin'}` : '';
  return `${start}/${database}${options}${source}`;
}

async function dropDatabase(url: string, database: string): Promise<void> {
  const client = new MongoClient(url);
  try {
    await client.db(database).dropDatabase();
  } finally {
    await client.close();
  }
}

/** Starts a stand-in in its own process; see `stand-in-process.ts`. */
class StandIn {
  readonly #child: ChildProcess;
  readonly url: string;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(kind: 'eventstoredb' | 'mongodb'): Promise<StandIn> {
    const entry = fileURLToPath(new URL('stand-in-process.ts', import.meta.url));
    const child = fork(entry, [kind], { execArgv: [...process.execArgv] });
    child.once(
      'exit',
      onBenchExit(() => child.kill('SIGKILL')),
    );
    const { url } = (await answerOf(child)) as { readonly url: string };
    return new StandIn(child, url);
  }

  async load(): Promise<Partial<ServerLoad>> {
    const answer = answerOf(this.#child);
    this.#child.send('load');
    return (await answer) as Partial<ServerLoad>;
  }

  async stop(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill();
    await ended;
  }
}

/** The next message of a process. @throws Error if it ends first */
async function answerOf(child: ChildProcess): Promise<unknown> {
  const over = new AbortController();
  const { signal } = over;
  try {
    return await Promise.race([
      once(child, 'message', { signal }).then(([message]) => message as unknown),
      once(child, 'exit', { signal }).then(([code]): never => {
        throw new Error(`the stand-in ended with ${String(code)}`);
      }),
    ]);
  } finally {
    over.abort();
  }
}
