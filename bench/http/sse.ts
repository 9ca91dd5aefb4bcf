import { get, type IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { withHttpService, type HttpService } from './http-service.ts';
import { residentMiBOf } from '../process-figures.ts';
import { percentile } from '../statistics.ts';

/** Changes that are timed one by one. */
const CHANGES = 20;
/** Of the clients, these then read nothing more, while so many runs come and go. */
const DEAF = 100;
const RUNS = 1_500;
/** How many of them are asked for at a time. */
const CALLERS = 20;
/** Milliseconds that all clients may take to hear of something before the benchmark gives up. */
const PATIENCE = 60_000;
/** Opened at a time. */
const CHUNK = 50;

/** Clients of `GET /runs/live`, all at once. */
export interface SseBenchmark {
  /** Milliseconds from the call that requests a run until the last client has heard of it. */
  readonly p50: number;
  readonly worst: number;
  /** How much memory the service took more, while some of them read nothing, and runs came and went. */
  readonly grownMiB: number;
  readonly residentMiB: number;
  /** Of those who read nothing, how many were let go. */
  readonly letGo: number;
}

/** @param clients how many */
export async function benchSse(clients: number): Promise<SseBenchmark> {
  return withHttpService(async (service) => {
    const taskId = await makeTask(service);
    const watchers: Watcher[] = [];
    try {
      for (let opened = 0; opened < clients; opened += CHUNK) {
        const chunk = Array.from({ length: Math.min(CHUNK, clients - opened) }, () =>
          Watcher.open(service),
        );
        watchers.push(...(await Promise.all(chunk)));
      }
      const took: number[] = [];
      for (let change = 1; change <= CHANGES; change += 1) {
        const begun = performance.now();
        await service.client.tasks.runNow(taskId);
        await allHave(watchers, change);
        took.push(Math.max(...watchers.map(({ heardAt }) => heardAt)) - begun);
      }
      const before = residentMiBOf(service.process.pid);
      const deaf = watchers.slice(0, Math.min(DEAF, Math.floor(clients / 2)));
      for (const watcher of deaf) watcher.stopReading();
      await makeRuns(service, taskId);
      await allHave(watchers.slice(deaf.length), CHANGES + RUNS);
      const after = residentMiBOf(service.process.pid);
      for (const watcher of deaf) watcher.readOn();
      await pause(1_000);
      const letGo = deaf.filter((watcher) => watcher.wasLetGo).length;
      return {
        p50: percentile(took, 0.5),
        worst: percentile(took, 1),
        grownMiB: after - before,
        residentMiB: after,
        letGo,
      };
    } finally {
      for (const watcher of watchers) watcher.close();
    }
  });
}

const MARK = 'event: run.requested\n';
const END = 'event: live.ended\n';

/** A client that counts what it hears. */
class Watcher {
  /** Runs that it has heard of, and when of the last. */
  heard = 0;
  heardAt = 0;
  wasLetGo = false;
  readonly #response: IncomingMessage;
  /** The end of what came last: a mark may come in two pieces. */
  #rest = '';

  private constructor(response: IncomingMessage) {
    this.#response = response;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#take(text));
    // Cut off by one of both sides.
    response.on('error', () => undefined);
  }

  static open({ process, headers }: HttpService): Promise<Watcher> {
    const url = `http://127.0.0.1:${process.port}/runs/live`;
    return new Promise((resolve, reject) => {
      get(url, { agent: false, headers }, (response) => {
        if (response.statusCode === 200) resolve(new Watcher(response));
        else reject(new Error(`a client was answered with ${String(response.statusCode)}`));
      }).on('error', reject);
    });
  }

  stopReading(): void {
    this.#response.pause();
  }

  readOn(): void {
    this.#response.resume();
  }

  close(): void {
    this.#response.destroy();
  }

  #take(chunk: string): void {
    const text = this.#rest + chunk;
    const marks = text.split(MARK).length - 1;
    if (text.includes(END)) this.wasLetGo = true;
    // Shorter than either mark, so that none is counted twice.
    this.#rest = text.slice(-(END.length - 1));
    if (marks === 0) return;
    this.heard += marks;
    this.heardAt = performance.now();
  }
}

async function allHave(watchers: readonly Watcher[], count: number): Promise<void> {
  const until = performance.now() + PATIENCE;
  while (!watchers.every(({ heard }) => heard >= count)) {
    if (performance.now() > until) throw new Error('not all clients have heard of all runs');
    await pause(2);
  }
}

async function makeTask({ client, agentId }: HttpService): Promise<string> {
  const { data } = await client.tasks.create({
    title: 'watched',
    description: 'has runs that are watched',
    schedule_kind: 'event',
    schedule_expr: 'bench.none',
    payload: { pipeline: [{ uses: 'echo', with: { text: 'x'.repeat(1_000) } }] },
    created_by: agentId,
  });
  return data.id;
}

async function makeRuns({ client }: HttpService, taskId: string): Promise<void> {
  let left = RUNS;
  const caller = async (): Promise<void> => {
    while (left-- > 0) await client.tasks.runNow(taskId);
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const clients = Number(process.argv[2] ?? 1_000);
  process.stdout.write(`${JSON.stringify(await benchSse(clients), null, 2)}\n`);
}
