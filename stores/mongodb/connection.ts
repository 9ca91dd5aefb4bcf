import { accessSync, constants } from 'node:fs';
import { performance } from 'node:perf_hooks';
import { type Db, MongoClient, type MongoClientOptions } from 'mongodb';
import type { Telemetry } from '../../observability/telemetry.ts';
import { NoAnswer, explain, isDatabaseFault, isUnreachable } from './failures.ts';
import { databaseOf, withoutConcerns } from './url.ts';

/** How to reach a MongoDB server, a replica set, or one compatible with it. */
export interface MongoOptions {
  /** `mongodb://…` or `mongodb+srv://…`. */
  readonly url: string;
  /** Default: the database in the URL's path, else `svc`. */
  readonly database?: string;
  readonly telemetry: Telemetry;
  /** How long an operation looks for a server before it gives up, in milliseconds; default 2,000. */
  readonly serverSelectionTimeoutMs?: number;
  /** How long an operation may take, in milliseconds; default 20,000. Making indexes has no limit. */
  readonly operationTimeoutMs?: number;
  /** How long `ping` may take, in milliseconds; default 1,900. */
  readonly pingTimeoutMs?: number;
}

/** What kind of server answers. */
export type Deployment = 'standalone' | 'replica-set' | 'sharded';

/** Makes an adapter's own error of an explanation and the driver's error. */
export type FailureOf = (message: string, cause: unknown) => Error;

/**
 * One client for all adapters that name the same server and database in the same way. It opens without a
 * server: each operation looks for one for a short while, so everything goes on by itself once it is
 * there.
 */
export class MongoConnection {
  readonly #client: MongoClient;
  readonly #db: Db;
  readonly #telemetry: Telemetry;
  readonly #operationTimeoutMs: number;
  readonly #pingTimeoutMs: number;
  #connected = false;
  #reachable = true;
  #deployment: Deployment | undefined;
  #transactions: boolean | undefined;

  /** @throws Error for a URL that is none, or that names a file which can't be read */
  constructor(options: MongoOptions) {
    const selection = options.serverSelectionTimeoutMs ?? 2000;
    const settings: MongoClientOptions = {
      // The driver's default of 30 s is too long for a health check and for a request that waits.
      serverSelectionTimeoutMS: selection,
      // After a lost connection, operations wait for the next look at the server: by default half a second.
      minHeartbeatFrequencyMS: 100,
      connectTimeoutMS: Math.max(selection, 2000),
      // A server that falls silent is noticed so much later, and that time for connecting: what was asked of it fails
      // then. By default that is 12 s, in which whoever asks for a list would wait for nothing.
      heartbeatFrequencyMS: Math.max(selection, 500),
      // What was written must be what is read next, whatever the URL or the servers' own default says. Not `majority`:
      // a new primary's snapshot of that may be older than what the one before has acknowledged (outside of a causally
      // consistent session), and a document that is folded on from there would lack what came between.
      readPreference: 'primary',
      readConcern: { level: 'local' },
      // A lease, a fence or a checkpoint that is acknowledged must outlive a change of the primary and a crash:
      // servers before 5.0 acknowledge by default what one member has in memory, and a URL may ask for less.
      writeConcern: { w: 'majority', journal: true },
      // Text of JSON and numbers only: nothing here needs the driver's own number types.
      promoteValues: true,
    };
    this.#client = new MongoClient(withoutConcerns(options.url), settings);
    // The driver reads them when it connects, and each operation would fail with what the file system says.
    const { tlsCAFile, tlsCRLFile, tlsCertificateKeyFile } = this.#client.options;
    for (const file of [tlsCAFile, tlsCRLFile, tlsCertificateKeyFile]) {
      if (file !== undefined) accessSync(file, constants.R_OK);
    }
    this.#db = this.#client.db(options.database ?? databaseOf(options.url));
    this.#telemetry = options.telemetry;
    this.#operationTimeoutMs = options.operationTimeoutMs ?? 20_000;
    this.#pingTimeoutMs = options.pingTimeoutMs ?? 1900;
  }

  /** For sessions. */
  get client(): MongoClient {
    return this.#client;
  }

  /**
   * Milliseconds after which nobody waits for a query any more. To be told to the server with each that may take long:
   * it would go on with one that was given up, and with those that are asked in its place.
   */
  get maxTimeMS(): number {
    return this.#operationTimeoutMs;
  }

  /**
   * Does something with the database.
   *
   * @param operation its name, for messages and measurements; from a closed set
   * @param limit milliseconds it may take; `Infinity` for what makes indexes
   * @throws what `failureOf` makes of a driver's error; other errors as they are
   */
  async run<T>(
    operation: string,
    failureOf: FailureOf,
    act: (db: Db) => Promise<T>,
    limit = this.#operationTimeoutMs,
  ): Promise<T> {
    const began = performance.now();
    try {
      const result = await within(
        limit,
        this.#ready().then((db) => act(db)),
      );
      this.#noteReachable();
      return result;
    } catch (error) {
      if (!isDatabaseFault(error)) throw error;
      throw failureOf(this.#noteFailure(error, operation), error);
    } finally {
      const seconds = (performance.now() - began) / 1000;
      this.#telemetry.observe('mongodb_operation_seconds', seconds, { operation });
    }
  }

  /** Whether the database answers, within the time for that. */
  async ping(failureOf: FailureOf): Promise<void> {
    await this.run('ping', failureOf, (db) => db.command({ ping: 1 }), this.#pingTimeoutMs);
  }

  /** What kind of server this is; asked once. Inside of `run`. */
  async deployment(): Promise<Deployment> {
    if (this.#deployment === undefined) {
      const hello = await this.#db.admin().command({ hello: 1 });
      this.#deployment =
        hello['msg'] === 'isdbgrid'
          ? 'sharded'
          : typeof hello['setName'] === 'string'
            ? 'replica-set'
            : 'standalone';
      this.#telemetry.log.info('MongoDB found', {
        hosts: this.#hosts(),
        deployment: this.#deployment,
      });
    }
    return this.#deployment;
  }

  /** Whether transactions are to be used. Inside of `run`. */
  async hasTransactions(): Promise<boolean> {
    this.#transactions ??= (await this.deployment()) !== 'standalone';
    return this.#transactions;
  }

  /** Uses no transactions from now on: the server refused one. */
  giveUpTransactions(cause: unknown): void {
    this.#transactions = false;
    this.#telemetry.log.warn('MongoDB refuses transactions; going on with guarded writes', {
      hosts: this.#hosts(),
      error: cause instanceof Error ? cause.message : String(cause),
    });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  /**
   * The driver connects by itself, but only once: after a first attempt that failed it keeps a closed
   * topology, on which every later operation fails. Asking it to connect makes a new one.
   */
  async #ready(): Promise<Db> {
    if (!this.#connected) {
      await this.#client.connect();
      this.#connected = true;
    }
    return this.#db;
  }

  #noteReachable(): void {
    if (this.#reachable) return;
    this.#reachable = true;
    this.#telemetry.log.info('MongoDB answers again', { hosts: this.#hosts() });
  }

  #noteFailure(error: Error, operation: string): string {
    const unreachable = isUnreachable(error);
    const message = explain(error, operation, this.#hosts());
    this.#telemetry.count('mongodb_errors_total', {
      kind: unreachable ? 'unreachable' : 'refused',
    });
    // One line when it goes away, not one for each operation meanwhile.
    if (!unreachable || this.#reachable) this.#telemetry.log.warn(message, { operation });
    if (unreachable) this.#reachable = false;
    return message;
  }

  #hosts(): string {
    return this.#client.options.hosts.map(String).join(',');
  }
}

const shared = new Map<string, { readonly connection: MongoConnection; users: number }>();

/** A share of a connection; gives it back exactly once. */
export interface SharedConnection {
  readonly connection: MongoConnection;
  /** Closes the connection when nobody else uses it. */
  release(): Promise<void>;
}

/** The connection for these options, which adapters of one process share. */
export function shareConnection(options: MongoOptions): SharedConnection {
  const { telemetry: _, ...settings } = options;
  const key = JSON.stringify(Object.entries(settings).sort());
  const entry = shared.get(key) ?? { connection: new MongoConnection(options), users: 0 };
  entry.users += 1;
  shared.set(key, entry);
  let released = false;
  return {
    connection: entry.connection,
    async release() {
      if (released) return;
      released = true;
      entry.users -= 1;
      if (entry.users > 0) return;
      shared.delete(key);
      await entry.connection.close();
    },
  };
}

/**
 * An operation's result, or {@link NoAnswer} when it takes too long. By our own timer: the driver's
 * `timeoutMS` has no effect any more (7.8), and its socket timeout can't be lifted for single operations.
 * What was given up may still happen; every write here can bear that.
 */
async function within<T>(limit: number, operation: Promise<T>): Promise<T> {
  if (limit === Infinity) return operation;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new NoAnswer(limit)), limit);
  });
  try {
    return await Promise.race([operation, late]);
  } finally {
    clearTimeout(timer);
  }
}
