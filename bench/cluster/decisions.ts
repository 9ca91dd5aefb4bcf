import { setTimeout as pause } from 'node:timers/promises';
import { BenchService, BenchStore } from '../bench-service.ts';
import { withBenchFolder } from '../bench-folder.ts';
import { allEvents, inChunks } from '../log.ts';
import { tasksProjection } from '../../projections/views/tasks.ts';
import type { Figures, Benchmark } from '../benchmark.ts';
import { embedded, openServers, type BenchServers } from './bench-servers.ts';
import { ProcessMetrics } from './server-load.ts';

/** Tasks that are created at a time. */
const MAX_CONCURRENT = 200;
const MINUTE = 60_000;
/** Milliseconds between two checks of the decisions. */
const POLL_INTERVAL = 500;

/**
 * Measures how many fires one process with the role scheduler decides in a second, with tasks that are due every
 * minute. Each decision computes the next fire, and appends the decision and the request of a run. No process executes
 * the runs or builds views.
 */
export const decisionBenchmarks: Readonly<Record<string, Benchmark>> = {
  'decisions-servers': workOver(openServers),
  'decisions-embedded': workOver(async () => embedded),
};

function workOver(open: () => Promise<BenchServers>): Benchmark {
  return {
    targets: [],
    count: ({ deciding }) => deciding,
    measure: ({ deciding }) =>
      withBenchFolder('decisions', async (folder) => {
        const servers = await open();
        try {
          return await measure(folder, servers, deciding);
        } finally {
          await servers.close();
        }
      }),
  };
}

async function measure(
  folder: string,
  { settings }: BenchServers,
  tasks: number,
): Promise<Figures> {
  const urls = {
    eventStoreUrl: settings['SVC_EVENT_STORE_URL'],
    readModelUrl: settings['SVC_READ_MODEL_URL'],
  };
  const bench = await BenchStore.open(folder, urls);
  try {
    const everyMinute = { schedule_kind: 'cron', schedule_expr: '* * * * *' } as const;
    const ids = await inChunks(tasks, MAX_CONCURRENT, async () => {
      const { id } = await bench.createTask(everyMinute);
      return id;
    });
    // The scheduler starts from the view of tasks.
    const projector = await BenchService.start(folder, { ...settings, SVC_ROLES: 'projector' });
    await bench.untilDocuments(tasksProjection, tasks);
    await projector.stop();
    const scheduler = await BenchService.start(folder, { ...settings, SVC_ROLES: 'scheduler' });
    // The first minute includes the compilation of the code.
    const minute = Math.ceil(Date.now() / MINUTE + 1) * MINUTE;
    await pause(minute - MINUTE / 4 - Date.now());
    const before = await decided(scheduler);
    await pause(minute - Date.now());
    let after = before;
    while (after.fires < before.fires + tasks) {
      await pause(POLL_INTERVAL);
      after = await decided(scheduler);
    }
    await scheduler.stop();
    // Cleans up for the next measurement on the same server.
    await inChunks(tasks, MAX_CONCURRENT, (index) => bench.cancelTask(ids[index] ?? ''));
    const seconds = (await lastDecision(bench, minute, tasks)) / 1000;
    return {
      'decisions/s': tasks / seconds,
      'cpu us a decision': ((after.cpu - before.cpu) / tasks) * 1e6,
    };
  } finally {
    await bench.close();
  }
}

/** How many fires a process has decided to run, and its processor time in seconds. */
async function decided(
  scheduler: BenchService,
): Promise<{ readonly fires: number; readonly cpu: number }> {
  const metrics = await ProcessMetrics.read(scheduler);
  const fires = metrics.sum('fires_total{outcome="run"}');
  return { fires, cpu: scheduler.cpuSeconds() };
}

/** Milliseconds from a nominal time to its last decision. @throws Error unless each task fired once */
async function lastDecision(
  { store }: BenchStore,
  nominal: number,
  tasks: number,
): Promise<number> {
  const decidedAt = new Map<string, number>();
  for await (const { stream, type, data, createdAt } of allEvents(store)) {
    if (type !== 'Fired' || Date.parse(data.nominal) !== nominal) continue;
    if (decidedAt.has(stream)) throw new Error(`${stream} has two fires at one time`);
    decidedAt.set(stream, Date.parse(createdAt));
  }
  if (decidedAt.size !== tasks) throw new Error(`${decidedAt.size} of ${tasks} tasks fired`);
  return [...decidedAt.values()].reduce((last, at) => Math.max(last, at), 0) - nominal;
}
