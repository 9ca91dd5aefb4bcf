import { get, type IncomingMessage } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { inChunks } from '../log.ts';
import { residentMiBOf } from '../process-figures.ts';
import { percentile } from '../statistics.ts';
import { lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { withHttpService, type HttpService } from './http-service.ts';

/** Changes that are timed. */
const CHANGES = 20;
/** Clients that stop reading, and the runs that start and end meanwhile. */
const STALLED_CLIENTS = 100;
const RUNS = 1_500;
/** Requests for them at a time. */
const CALLERS = 20;
/** Milliseconds until the benchmark gives up on a client. */
const TIMEOUT = 60_000;
/** Clients that connect at a time. */
const CHUNK = 50;

/** Clients of `GET /runs/live`: milliseconds from a request of a run until the last client receives it, and memory. */
export const sse: Benchmark = {
  targets: [
    lessThan('worst ms', 1_000, 'to the last client'),
    lessThan('grown MiB', 200, 'some clients stop reading'),
  ],
  count: ({ clients }) => clients,
  measure: ({ clients }) =>
    withHttpService(async (service) => {
      const watchers: Watcher[] = [];
      try {
        await inChunks(clients, CHUNK, async () => {
          watchers.push(await Watcher.open(service));
        });
        return await measure(service, watchers);
      } finally {
        for (const watcher of watchers) watcher.close();
      }
    }),
};

async function measure(service: HttpService, watchers: readonly Watcher[]): Promise<Figures> {
  const { client, agentId, process } = service;
  const { data: task } = await client.tasks.create({
    title: 'watched',
    description: 'has runs that are watched',
    schedule_kind: 'event',
    schedule_expr: 'bench.none',
    payload: { pipeline: [{ uses: 'echo', with: { text: 'x'.repeat(1_000) } }] },
    created_by: agentId,
  });
  const took: number[] = [];
  for (let change = 1; change <= CHANGES; change += 1) {
    const start = performance.now();
    await client.tasks.runNow(task.id);
    await untilReceived(watchers, change);
    took.push(Math.max(...watchers.map(({ receivedAt }) => receivedAt)) - start);
  }
  const before = residentMiBOf(process.pid);
  const count = Math.min(STALLED_CLIENTS, Math.floor(watchers.length / 2));
  const [stalled, others] = [watchers.slice(0, count), watchers.slice(count)];
  for (const watcher of stalled) watcher.stopReading();
  await inChunks(RUNS, CALLERS, () => client.tasks.runNow(task.id));
  await untilReceived(others, CHANGES + RUNS);
  const after = residentMiBOf(process.pid);
  for (const watcher of stalled) watcher.resumeReading();
  await pause(1_000);
  return {
    'p50 ms': percentile(took, 0.5),
    'worst ms': percentile(took, 1),
    'grown MiB': after - before,
    'resident MiB': after,
    'let go': stalled.filter((watcher) => watcher.wasDisconnected).length,
  };
}

const MARK = 'event: run.requested\n';
const END = 'event: live.ended\n';

/** A client that counts the runs it receives. */
class Watcher {
  received = 0;
  receivedAt = 0;
  wasDisconnected = false;
  readonly #response: IncomingMessage;
  /** The end of the last chunk, because a mark can be split. */
  #rest = '';

  private constructor(response: IncomingMessage) {
    this.#response = response;
    response.setEncoding('utf8');
    response.on('data', (text: string) => this.#take(text));
    response.on('error', () => undefined);
  }

  static open({ process, headers }: HttpService): Promise<Watcher> {
    const url = `http://127.0.0.1:${process.port}/runs/live`;
    return new Promise((resolve, reject) => {
      get(url, { agent: false, headers }, (response) => {
        if (response.statusCode === 200) resolve(new Watcher(response));
        else reject(new Error(`a client received ${String(response.statusCode)}`));
      }).on('error', reject);
    });
  }

  stopReading(): void {
    this.#response.pause();
  }

  resumeReading(): void {
    this.#response.resume();
  }

  close(): void {
    this.#response.destroy();
  }

  #take(chunk: string): void {
    const text = this.#rest + chunk;
    const marks = text.split(MARK).length - 1;
    if (text.includes(END)) this.wasDisconnected = true;
    // Shorter than either mark, so that none is counted twice.
    this.#rest = text.slice(-(END.length - 1));
    if (marks === 0) return;
    this.received += marks;
    this.receivedAt = performance.now();
  }
}

async function untilReceived(watchers: readonly Watcher[], count: number): Promise<void> {
  const deadline = performance.now() + TIMEOUT;
  while (!watchers.every(({ received }) => received >= count)) {
    if (performance.now() > deadline) throw new Error('not all clients received all runs');
    await pause(2);
  }
}
