import { setTimeout as pause } from 'node:timers/promises';
import { ApiError } from '../../api/client/client-connection.ts';
import { BenchService } from '../bench-service.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { inChunks } from '../log.ts';
import { read, startHttpService, type HttpService } from '../http/http-service.ts';
import type { Figures, Benchmark } from '../benchmark.ts';
import { embedded, openServers, type BenchServers } from './bench-servers.ts';
import { ProcessMetrics, loadBetween, type ServerLoad } from './server-load.ts';

/** Worker processes, beside one process with all other roles. */
const WORKERS = [1, 2, 4];
/** Callers that request a run over HTTP, wait for the response, and continue. */
const CALLERS = 50;
/** Runs before anything is measured. */
const WARM_UP = 200;
/**
 * Milliseconds between two polls of a list, which are part of the load, and for how long an idle cluster is observed.
 */
const POLL_INTERVAL = 250;
const IDLE = 10_000;
/** Milliseconds before a rejected request is repeated. */
const RETRY_AFTER = 1_000;

/**
 * Measures how the throughput of one-step runs grows with the number of worker processes, and the load on the servers.
 * First, the runs are queued while the service is on hold, and then all workers take from that queue. Then they are
 * requested one by one.
 */
export const clusterBenchmarks: Readonly<Record<string, Benchmark>> = {
  'cluster-servers': workOver(openServers),
  'cluster-embedded': workOver(async () => embedded),
};

function workOver(open: () => Promise<BenchServers>): Benchmark {
  return {
    targets: [],
    count: ({ clustered }) => clustered,
    async measure({ clustered }) {
      const figures: Record<string, number> = {};
      for (const workers of WORKERS) {
        const measured = await measure(open, workers, clustered);
        for (const [name, value] of Object.entries(measured)) {
          figures[`${workers} ${workers === 1 ? 'worker' : 'workers'}: ${name}`] = value;
        }
      }
      return figures;
    },
  };
}

async function measure(
  open: () => Promise<BenchServers>,
  workers: number,
  n: number,
): Promise<Figures> {
  return withBenchFolder('cluster', async (folder) => {
    const servers = await open();
    try {
      const cluster = await Cluster.start(folder, servers, workers);
      await cluster.endToEnd(WARM_UP);
      const drained = await cluster.drain(n);
      const requested = await cluster.endToEnd(n);
      const idle = await cluster.idle();
      await cluster.stop();
      return { ...drained, ...requested, ...idle };
    } finally {
      await servers.close();
    }
  });
}

/** The totals so far. Processor time is in seconds. */
interface Look {
  /** null without servers. */
  readonly load: ServerLoad | null;
  readonly lostRaces: number;
  readonly mainCpu: number;
  readonly workersCpu: number;
}

/** One process with the roles api, projector and scheduler, and some with the role worker. */
class Cluster {
  readonly #servers: BenchServers;
  readonly #main: HttpService;
  readonly #workers: readonly BenchService[];

  private constructor(servers: BenchServers, main: HttpService, workers: readonly BenchService[]) {
    this.#servers = servers;
    this.#main = main;
    this.#workers = workers;
  }

  static async start(folder: string, servers: BenchServers, workers: number): Promise<Cluster> {
    const { settings } = servers;
    const roles = { ...settings, SVC_ROLES: 'api,projector,scheduler' };
    const main = await startHttpService(folder, roles);
    const one = () => BenchService.start(folder, { ...settings, SVC_ROLES: 'worker' });
    return new Cluster(servers, main, await inChunks(workers, 1, one));
  }

  /** Runs wait, and then all workers start at once. Measured from the first start to the last end. */
  async drain(n: number): Promise<Figures> {
    const { client } = this.#main;
    await client.operations.hold({ reason: 'queueing runs' });
    const task = await this.#createTask();
    await this.#request(task, n);
    const before = await this.#look();
    await client.operations.release();
    await this.#untilEnded(task, n);
    const after = await this.#look();
    const { started, ended } = await this.#timesOf(task, n);
    const load = loadBetween(before.load, after.load);
    return {
      'drain runs/s': (n / (ended - started)) * 1000,
      'drain cpu us a run, workers': ((after.workersCpu - before.workersCpu) / n) * 1e6,
      'drain lost races a run': (after.lostRaces - before.lostRaces) / n,
      ...(load && { 'drain appends a run': load.appends / n }),
    };
  }

  /** Runs are requested while workers execute them. Measured from the first request to the last end. */
  async endToEnd(n: number): Promise<Figures> {
    const task = await this.#createTask();
    const before = await this.#look();
    const begun = Date.now();
    await this.#request(task, n);
    await this.#untilEnded(task, n);
    const after = await this.#look();
    const { ended } = await this.#timesOf(task, n);
    const load = loadBetween(before.load, after.load);
    return {
      'runs/s': (n / (ended - begun)) * 1000,
      'cpu us a run, api and views': ((after.mainCpu - before.mainCpu) / n) * 1e6,
      'cpu us a run, workers': ((after.workersCpu - before.workersCpu) / n) * 1e6,
      'lost races a run': (after.lostRaces - before.lostRaces) / n,
      ...(load && {
        'appends a run': load.appends / n,
        'stream reads a run': load.streamReads / n,
        'log reads a run': load.logReads / n,
        'commands a run': load.commands / n,
        'documents a run': load.documents / n,
      }),
    };
  }

  /** The requests to the servers while the cluster is idle, and the subscriptions since the start. */
  async idle(): Promise<Figures> {
    const before = await this.#look();
    await pause(IDLE);
    const after = await this.#look();
    const asked = loadBetween(before.load, after.load);
    if (asked === null) return {};
    const seconds = IDLE / 1000;
    const { appends, streamReads, logReads, endReads, commands } = asked;
    return {
      'subscriptions a process': (after.load?.subscriptions ?? 0) / (1 + this.#workers.length),
      'idle log reads/s': logReads / seconds,
      'idle other calls/s': (appends + streamReads + endReads) / seconds,
      'idle commands/s': commands / seconds,
    };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await this.#main.process.stop();
  }

  async #createTask(): Promise<string> {
    const { data } = await this.#main.client.tasks.create({
      title: 'echo',
      description: 'returns its input',
      schedule_kind: 'event',
      schedule_expr: 'bench.none',
      payload: { pipeline: [{ uses: 'echo', with: { index: 1 } }] },
      created_by: this.#main.agentId,
    });
    return data.id;
  }

  async #request(task: string, n: number): Promise<void> {
    let left = n;
    const caller = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        try {
          await this.#main.client.tasks.runNow(task);
        } catch (error) {
          // A server is too busy to respond. If it wrote the request anyway, there is one more run.
          if (!(error instanceof ApiError) || error.code !== 'unavailable') throw error;
          left += 1;
          await pause(RETRY_AFTER);
        }
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
  }

  async #untilEnded(task: string, n: number): Promise<void> {
    const { client } = this.#main;
    for (;;) {
      const { data } = await client.runs.list({ task_id: task, state: 'succeeded', limit: 1 });
      if ((data.total ?? 0) >= n) return;
      await pause(POLL_INTERVAL);
    }
  }

  /** When the first run of a task started and the last one ended. @throws Error if there are fewer */
  async #timesOf(task: string, n: number): Promise<Readonly<Record<'started' | 'ended', number>>> {
    const rows = (await read(this.#main, `/runs/export?format=ndjson&task_id=${task}`)).trim();
    const runs = rows.split('\n').map((row) => JSON.parse(row) as Record<string, string>);
    if (runs.length < n) throw new Error(`${runs.length} of ${n} runs are there`);
    let [started, ended] = [Infinity, 0];
    for (const { started_at = '', finished_at = '' } of runs) {
      started = Math.min(started, Date.parse(started_at));
      ended = Math.max(ended, Date.parse(finished_at));
    }
    return { started, ended };
  }

  async #look(): Promise<Look> {
    const { process } = this.#main;
    const metrics = await Promise.all(
      [process, ...this.#workers].map((one) => ProcessMetrics.read(one)),
    );
    return {
      load: await this.#servers.load(metrics),
      lostRaces: metrics.reduce((sum, one) => sum + one.sum('worker_lost_races_total'), 0),
      mainCpu: process.cpuSeconds(),
      workersCpu: this.#workers.reduce((sum, worker) => sum + worker.cpuSeconds(), 0),
    };
  }
}
