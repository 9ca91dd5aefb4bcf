import { setTimeout as pause } from 'node:timers/promises';
import { tasksProjection } from '../../projections/views/tasks.ts';
import { BenchService, secondsOf, withBenchStore, type BenchStore } from '../bench-service.ts';
import { inChunks } from '../log.ts';
import { residentMiBOf } from '../process-figures.ts';
import { lessThan, type Benchmark } from '../benchmark.ts';

const TASKS = 10_000;
/** Milliseconds after the start, before watching begins. */
const SETTLE = 20_000;
/**
 * Seconds of watching. A collection of the start's garbage comes 25 to 80 seconds after it and takes a third of a second,
 * which a shorter time would include or not by chance.
 */
const WATCHED = 60;

/** The service with active cron tasks, none of which is due soon. */
export const idle: Benchmark = {
  targets: [
    lessThan('cpu %', 2, 'of one core, with 10,000 tasks'),
    lessThan('resident MiB', 200, 'with 10,000 tasks'),
  ],
  count: () => TASKS,
  measure: () =>
    withBenchStore(async (bench) => {
      // Daily, each at its own minute, none within two hours.
      const hour = new Date().getUTCHours() + 3;
      await inChunks(TASKS, 500, (index) =>
        bench.createTask({
          title: `report ${index}`,
          schedule_kind: 'cron',
          schedule_expr: `${index % 60} ${(hour + (index % 20)) % 24} * * *`,
        }),
      );
      const firstReady = await buildTaskViews(bench, TASKS);
      const { service, ready } = await startTimed(bench.directory);
      await pause(SETTLE);
      const cpuPercent = await service.cpuPercent(WATCHED);
      const residentMiB = residentMiBOf(service.pid);
      await service.stop();
      return {
        'cpu %': cpuPercent,
        'resident MiB': residentMiB,
        'ready s': ready,
        'first ready s': firstReady,
      };
    }),
};

/** Starts the service and measures the seconds until it is ready. */
export async function startTimed(
  directory: string,
): Promise<{ readonly service: BenchService; readonly ready: number }> {
  let service: BenchService | undefined;
  const ready = await secondsOf(async () => {
    service = await BenchService.start(directory);
  });
  if (service === undefined) throw new Error('the service did not start');
  return { service, ready };
}

/** Lets the service build the views of a store with the given number of tasks. Returns the seconds until it is ready. */
export async function buildTaskViews(bench: BenchStore, tasks: number): Promise<number> {
  const { service, ready } = await startTimed(bench.directory);
  await bench.untilDocuments(tasksProjection, tasks);
  await service.stop();
  return ready;
}
