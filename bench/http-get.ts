import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startBareServer } from './http-bare.ts';
import { load, type LoadResult } from './http-load.ts';
import { withHttpService, type HttpService } from './http-service.ts';
import { cpuSecondsOf } from './process-cpu.ts';
import { percentile } from './statistics.ts';

const CONNECTIONS = 50;
/** Tasks that are read, one after the other by each connection; each has a run behind it. */
const TASKS = 100;
/** Ours and the other take turns, so that a slow moment of the machine hits both. */
const TURNS = 3;

/** Reading one task, beside a bare route that answers the same bytes. */
export interface HttpGetBenchmark {
  readonly ours: SideOfGet;
  readonly bare: SideOfGet;
}

/** What one of the two has done. */
export interface SideOfGet {
  readonly perSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Microseconds of processor time of the server for each request, all threads together. */
  readonly cpu: number;
}

/** @param seconds of each turn; there are three for each of the two, after one that does not count */
export async function benchHttpGet(seconds: number): Promise<HttpGetBenchmark> {
  return withHttpService(async (service, directory) => {
    const answers = await makeTasks(service);
    const bare = await startBareServer({ answers, file: join(directory, 'bare.db') });
    const requests = Object.keys(answers).map((id) => ({ path: `/tasks/${id}` }));
    const { headers } = service;
    const sides = [new Side(bare), new Side(service.process)] as const;
    try {
      for (let turn = 0; turn <= TURNS; turn += 1) {
        for (const side of sides) {
          const { port } = side.server;
          const before = cpuSecondsOf(side.server.pid);
          const made = await load({ port, connections: CONNECTIONS, seconds, headers, requests });
          if (turn > 0) side.add(made, cpuSecondsOf(side.server.pid) - before);
        }
      }
      const [theirs, ours] = sides;
      return { ours: ours.sum(), bare: theirs.sum() };
    } finally {
      await bare.stop();
    }
  });
}

class Side {
  readonly server: { readonly port: number; readonly pid: number };
  readonly #rates: number[] = [];
  readonly #latencies: number[] = [];
  #cpu = 0;

  constructor(server: Side['server']) {
    this.server = server;
  }

  add({ perSecond, latencies }: LoadResult, cpuSeconds: number): void {
    this.#rates.push(perSecond);
    for (const latency of latencies) this.#latencies.push(latency);
    this.#cpu += cpuSeconds;
  }

  sum(): SideOfGet {
    const latencies = this.#latencies;
    return {
      perSecond: this.#rates.reduce((sum, rate) => sum + rate, 0) / this.#rates.length,
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
      cpu: (this.#cpu * 1e6) / latencies.length,
    };
  }
}

/** @returns what the service answers of each task, by its id */
async function makeTasks({ client, agentId }: HttpService): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (let index = 0; index < TASKS; index += 1) {
    const { data: task } = await client.tasks.create({
      title: `report ${index}`,
      description: 'makes a report and sends it',
      schedule_kind: 'cron',
      schedule_expr: '0 3 * * *',
      payload: { pipeline: [{ id: 'made', uses: 'echo', with: { text: 'a report' } }] },
      created_by: agentId,
    });
    const { position } = await client.tasks.runNow(task.id, { wait: 60 });
    const after = position === null ? {} : { after: position };
    await client.runs.latest(task.id, after);
    answers[task.id] = JSON.stringify((await client.tasks.get(task.id, after)).data);
  }
  return answers;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const seconds = Number(process.argv[2] ?? 4);
  process.stdout.write(`${JSON.stringify(await benchHttpGet(seconds), null, 2)}\n`);
}
