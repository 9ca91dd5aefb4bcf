import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { tasksProjection } from '../../projections/views/tasks.ts';
import { BenchService, BenchStore } from '../bench-service.ts';
import { residentMiBOf } from '../process-figures.ts';

/** What the service costs while it has nothing to do. */
export interface IdleBenchmark {
  readonly tasks: number;
  /** From the start of the process until it says that it is ready, on a store without views: it makes them. */
  readonly firstReadySeconds: number;
  /** The same on the views that are there. */
  readonly readySeconds: number;
  /** Of one core, over the time that was watched. */
  readonly cpuPercent: number;
  /** Memory of the process at the end of that time. */
  readonly residentMiB: number;
}

const CHUNK = 500;
/** After the start, before watching begins. Milliseconds. */
const SETTLE = 20_000;
/**
 * How long it is watched. V8 gives back what starting took by a collection that comes some 25 to 80 seconds after it: a
 * third of a second's work, which is in a shorter time or not, by chance. Seconds.
 */
const WATCHED = 60;

/**
 * The service with so many active cron tasks, none of which is due within the hour.
 *
 * @param options.tasks default 10,000
 * @param options.seconds how long it is watched; default a minute
 */
export async function benchIdle(
  options: { readonly tasks?: number; readonly seconds?: number } = {},
): Promise<IdleBenchmark> {
  const { tasks = 10_000, seconds = WATCHED } = options;
  const bench = await BenchStore.open();
  try {
    await createTasks(bench, tasks);
    const { firstReadySeconds } = await makeTaskViews(bench, tasks);
    const began = performance.now();
    const service = await BenchService.start(bench.directory);
    const readySeconds = (performance.now() - began) / 1000;
    await pause(SETTLE);
    const cpuBefore = service.cpuSeconds();
    await pause(seconds * 1000);
    const cpuPercent = ((service.cpuSeconds() - cpuBefore) / seconds) * 100;
    const residentMiB = residentMiBOf(service.pid);
    await service.stop();
    return { tasks, firstReadySeconds, readySeconds, cpuPercent, residentMiB };
  } finally {
    await bench.remove();
  }
}

/** Daily, at a minute of their own, none within the next hour (nor the next two, to be sure). */
async function createTasks(bench: BenchStore, tasks: number): Promise<void> {
  const hour = new Date().getUTCHours() + 3;
  for (let from = 0; from < tasks; from += CHUNK) {
    const chunk = Array.from({ length: Math.min(CHUNK, tasks - from) }, (_, at) => from + at);
    await Promise.all(
      chunk.map((index) =>
        bench.createTask({
          title: `report ${index}`,
          schedule_kind: 'cron',
          schedule_expr: `${index % 60} ${(hour + (index % 20)) % 24} * * *`,
        }),
      ),
    );
  }
}

/** Lets the service make the views of a store that has so many tasks and no views. */
export async function makeTaskViews(bench: BenchStore, tasks: number) {
  const began = performance.now();
  const service = await BenchService.start(bench.directory);
  const firstReadySeconds = (performance.now() - began) / 1000;
  const { readModel } = bench.stores;
  while ((await readModel.liveGeneration(tasksProjection)) === null) await pause(5);
  while ((await readModel.count(tasksProjection, [])) < tasks) await pause(5);
  await service.stop();
  return { firstReadySeconds };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const tasks = Number(process.argv[2] ?? 10_000);
  process.stdout.write(`${JSON.stringify(await benchIdle({ tasks }), null, 2)}\n`);
}
