import { join } from 'node:path';
import { cpuSecondsOf } from '../process-figures.ts';
import { percentile } from '../statistics.ts';
import { atLeast, lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { startBareServer } from './http-bare.ts';
import { load, type Load } from './http-load.ts';
import { reportTask, withHttpService, type HttpService } from './http-service.ts';

const CONNECTIONS = 50;
/** Tasks that are read, each with a run. */
const TASKS = 100;

/** Reads tasks, beside a bare Express route that responds with the same bytes. */
export const httpGet: Benchmark = {
  targets: [atLeast('ratio', 0.6, 'beside bare Express')],
  count: ({ seconds }) => seconds,
  measure: ({ seconds }) =>
    withHttpService(async (service, directory) => {
      const answers = await makeTasks(service);
      const requests = Object.keys(answers).map((id) => ({ path: `/tasks/${id}` }));
      const { headers } = service;
      const { 'bare p50 ms': _, ...figures } = await compare(service, directory, answers, 3, {
        seconds,
        headers,
        requests,
      });
      return figures;
    }),
};

/** Creates tasks, beside a bare Express route with one durable insert. */
export const httpPost: Benchmark = {
  targets: [lessThan('p50 ms', 10), atLeast('ratio', 0.6, 'beside one durable insert')],
  count: ({ seconds }) => seconds,
  measure: ({ seconds }) =>
    withHttpService(async (service, directory) => {
      const body = JSON.stringify(reportTask('a report', service.agentId));
      const headers = { ...service.headers, 'content-type': 'application/json' };
      const requests = [{ method: 'POST', path: '/tasks', body }] as const;
      return compare(service, directory, {}, 2, { seconds, headers, requests });
    }),
};

/**
 * Loads the service and a bare server in turns, so that a slow moment of the machine affects both. The first turn of each
 * is not counted.
 * @param answers the bare server's responses to `GET /tasks/:id`
 */
async function compare(
  { process }: HttpService,
  directory: string,
  answers: Readonly<Record<string, string>>,
  turns: number,
  order: Omit<Load, 'port' | 'connections'>,
): Promise<Figures> {
  const server = await startBareServer({ answers, file: join(directory, 'bare.db') });
  const [bare, ours] = [new Side(server), new Side(process)];
  try {
    for (let turn = 0; turn <= turns; turn += 1) {
      for (const side of [bare, ours]) await side.take(order, turn > 0);
    }
  } finally {
    await server.stop();
  }
  return {
    'requests/s': ours.perSecond,
    'bare requests/s': bare.perSecond,
    ratio: ours.perSecond / bare.perSecond,
    'p50 ms': ours.latency(0.5),
    'p99 ms': ours.latency(0.99),
    'bare p50 ms': bare.latency(0.5),
    'cpu us': ours.cpu,
    'bare cpu us': bare.cpu,
  };
}

/** One of the two servers and its counted turns. */
class Side {
  readonly #server: { readonly port: number; readonly pid: number };
  readonly #rates: number[] = [];
  readonly #latencies: number[] = [];
  #cpuSeconds = 0;

  constructor(server: { readonly port: number; readonly pid: number }) {
    this.#server = server;
  }

  async take(order: Omit<Load, 'port' | 'connections'>, isCounted: boolean): Promise<void> {
    const { port, pid } = this.#server;
    const before = cpuSecondsOf(pid);
    const { perSecond, latencies } = await load({ ...order, port, connections: CONNECTIONS });
    if (!isCounted) return;
    this.#cpuSeconds += cpuSecondsOf(pid) - before;
    this.#rates.push(perSecond);
    for (const latency of latencies) this.#latencies.push(latency);
  }

  get perSecond(): number {
    return this.#rates.reduce((sum, rate) => sum + rate, 0) / this.#rates.length;
  }

  /** A percentile of the latencies in milliseconds. */
  latency(share: number): number {
    return percentile(this.#latencies, share);
  }

  /** Microseconds of processor time for each request, all threads of the server together. */
  get cpu(): number {
    return (this.#cpuSeconds * 1e6) / this.#latencies.length;
  }
}

/** Returns the service's response for each task, by its id. */
async function makeTasks({ client, agentId }: HttpService): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (let index = 0; index < TASKS; index += 1) {
    const { data: task } = await client.tasks.create(reportTask(`report ${index}`, agentId));
    const { position } = await client.tasks.runNow(task.id, { wait: 60 });
    const after = position === null ? {} : { after: position };
    await client.runs.latest(task.id, after);
    answers[task.id] = JSON.stringify((await client.tasks.get(task.id, after)).data);
  }
  return answers;
}
