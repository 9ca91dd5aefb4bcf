import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { toIso } from '../../domain/clock.ts';
import { pauseTaskCommand, updateTaskCommand } from '../../domain/tasks/task-commands.ts';
import { streams } from '../../domain/streams.ts';
import { BenchService, BenchStore, contextNow } from '../bench-service.ts';
import { manyTasksStore } from './many-tasks-store.ts';
import { residentMiBOf } from '../process-figures.ts';

/** What the service does with many active tasks, of which few are due. */
export interface ManyTasksBenchmark {
  readonly tasks: number;
  /** From the start of the process until it says that it is ready, the scheduler included, on views that are there. */
  readonly readySeconds: number;
  /** Of one core, over the time that was watched. */
  readonly cpuPercent: number;
  /** Memory of the process at the end of that time. */
  readonly residentMiB: number;
  /** The longest from the call that creates a task to the decision about its fire, which is {@link SOON} after the call. */
  readonly createMs: number;
  /** The same for a task that was there and is given such a fire. */
  readonly updateMs: number;
  /** The longest before its nominal time that a task was paused, and fired nevertheless; 0 where none did. */
  readonly pauseMs: number;
}

/** How many of each kind of change, one after the other. */
const CHANGES = 20;
/** A task that is created or changed fires so long after the call. Milliseconds. */
const SOON = 20;
/** The first task is paused so long before it would fire, each next one so much sooner. Milliseconds. */
const PAUSED_AHEAD = 10;
/** Between two of a kind. Milliseconds. */
const BETWEEN = 100;
/** After which a fire that should not be would have been. Milliseconds. */
const AFTERWARDS = 1_000;
/** After the start, before watching begins. Milliseconds. */
const SETTLE = 15_000;

/**
 * The service with so many active tasks, of which one is due each second and the others are not for hours; then tasks
 * are created, changed and paused by another process.
 *
 * @param options.tasks default 100,000
 * @param options.seconds how long it is watched; default 60, so that one pass of the audit is among it
 * @param options.kept folder of a store that stays; default: one that goes with this process
 */
export async function benchManyTasks(
  options: {
    readonly tasks?: number;
    readonly seconds?: number;
    readonly kept?: string | undefined;
  } = {},
): Promise<ManyTasksBenchmark> {
  const { tasks = 100_000, seconds = 60, kept } = options;
  const { directory, ids } = await manyTasksStore(tasks, kept);
  const began = performance.now();
  const service = await BenchService.start(directory);
  const readySeconds = (performance.now() - began) / 1000;
  await pause(SETTLE);
  const cpuBefore = service.cpuSeconds();
  await pause(seconds * 1000);
  const cpuPercent = ((service.cpuSeconds() - cpuBefore) / seconds) * 100;
  const residentMiB = residentMiBOf(service.pid);
  const bench = await BenchStore.open(directory);
  try {
    const changes = await changeTasks(bench, ids);
    return { tasks, readySeconds, cpuPercent, residentMiB, ...changes };
  } finally {
    await bench.close();
    await service.stop();
  }
}

/** From a call to the decision about the fire that it asks for. */
interface Asked {
  readonly id: string;
  readonly at: number;
}

async function changeTasks(bench: BenchStore, existing: readonly string[]) {
  const { store } = bench;
  const created: Asked[] = [];
  const updated: Asked[] = [];
  const paused: { readonly id: string; readonly lead: number }[] = [];
  const once = (at: number) =>
    ({ schedule_kind: 'once', schedule_expr: toIso(at), timezone: 'UTC' }) as const;
  for (let index = 0; index < CHANGES; index += 1) {
    const createdAt = Date.now();
    const { id } = await bench.createTask(once(createdAt + SOON));
    created.push({ id, at: createdAt });
    await pause(BETWEEN);
    const taskId = existing[Math.floor(((index + 0.5) / CHANGES) * existing.length)];
    if (taskId === undefined) throw new Error('there is no task to change');
    const changedAt = Date.now();
    const changes = once(changedAt + SOON);
    const command = { store, taskId, mayChange() {}, context: contextNow() };
    await updateTaskCommand({ ...command, changes });
    updated.push({ id: taskId, at: changedAt });
    await pause(BETWEEN);
    const lead = PAUSED_AHEAD * (index + 1);
    const due = Date.now() + BETWEEN + lead;
    const unwanted = await bench.createTask(once(due));
    await pause(due - lead - Date.now());
    const pausedAt = Date.now();
    const pausing = { store, taskId: unwanted.id, mayChange() {}, context: contextNow() };
    await pauseTaskCommand(pausing);
    paused.push({ id: unwanted.id, lead: due - pausedAt });
  }
  await pause(AFTERWARDS);
  const fired = await Promise.all(
    paused.map(async ({ id, lead }) => (Number.isFinite(await decidedAt(bench, id)) ? lead : 0)),
  );
  return {
    createMs: await longest(bench, created),
    updateMs: await longest(bench, updated),
    pauseMs: Math.max(...fired),
  };
}

async function longest(bench: BenchStore, asked: readonly Asked[]): Promise<number> {
  const took = asked.map(async ({ id, at }) => (await decidedAt(bench, id)) - at);
  return Math.max(...(await Promise.all(took)));
}

/** When the last fire of a task was written to the log; infinite where there is none. */
async function decidedAt({ store }: BenchStore, id: string): Promise<number> {
  const page = { direction: 'backwards', limit: 1 } as const;
  const [last] = await store.readStream(streams.fires(id), page);
  return last?.type === 'Fired' ? Date.parse(last.createdAt) : Number.POSITIVE_INFINITY;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const tasks = Number(process.argv[2] ?? 100_000);
  const result = await benchManyTasks({ tasks, kept: process.argv[3] });
  process.stdout.write(`${JSON.stringify(result, null, 2)}\n`);
}
