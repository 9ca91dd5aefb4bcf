import { setTimeout as pause } from 'node:timers/promises';
import { toIso } from '../../domain/clock.ts';
import { streams } from '../../domain/streams.ts';
import { pauseTaskCommand, updateTaskCommand } from '../../domain/tasks/task-commands.ts';
import { BenchStore, contextNow } from '../bench-service.ts';
import { residentMiBOf } from '../process-figures.ts';
import { lessThan, type Figures, type Benchmark } from '../benchmark.ts';
import { startTimed } from './idle.ts';
import { manyTasksStore } from './many-tasks-store.ts';

const TASKS = 100_000;
/** Changes of each kind, one after the other. */
const CHANGES = 20;
/** Milliseconds from a creation or change to the task's fire. */
const FIRE_DELAY = 20;
/** Milliseconds from a pause to the task's fire: this for the first task, twice this for the second, and so on. */
const PAUSE_LEAD = 10;
/** Milliseconds between two changes. */
const CHANGE_PAUSE = 100;
/** Milliseconds to wait for fires that should not come. */
const AFTERWARDS = 1_000;
/** Milliseconds after the start, before watching begins, and seconds of watching: with one pass of the audit. */
const SETTLE = 15_000;
const WATCHED = 60;

/** The service with many active tasks, of which one is due each second; another process changes some. */
export const manyTasks: Benchmark = {
  targets: [
    lessThan('ready s', 5, 'the scheduler is ready'),
    lessThan('cpu %', 5, 'of one core, little being due'),
    lessThan('resident MiB', 400, 'with 100,000 tasks'),
    lessThan('create ms', 100, 'a new task counts'),
    lessThan('update ms', 100, 'a changed one counts'),
    lessThan('pause ms', 100, 'a paused one does not fire'),
  ],
  count: () => TASKS,
  async measure() {
    const { directory, ids } = await manyTasksStore(TASKS);
    const { service, ready } = await startTimed(directory);
    await pause(SETTLE);
    const cpuPercent = await service.cpuPercent(WATCHED);
    const residentMiB = residentMiBOf(service.pid);
    const bench = await BenchStore.open(directory);
    try {
      const changes = await changeTasks(bench, ids);
      return { 'ready s': ready, 'cpu %': cpuPercent, 'resident MiB': residentMiB, ...changes };
    } finally {
      await bench.close();
      await service.stop();
    }
  },
};

/**
 * `create ms` and `update ms`: the longest time from the call to the decision about its fire. `pause ms`: the longest
 * lead of a pause whose task fired nevertheless; 0 for none.
 */
async function changeTasks(bench: BenchStore, existing: readonly string[]): Promise<Figures> {
  const { store } = bench;
  const created: Change[] = [];
  const updated: Change[] = [];
  const paused: { readonly id: string; readonly lead: number }[] = [];
  const once = (at: number) =>
    ({ schedule_kind: 'once', schedule_expr: toIso(at), timezone: 'UTC' }) as const;
  for (let index = 0; index < CHANGES; index += 1) {
    const createdAt = Date.now();
    const { id } = await bench.createTask(once(createdAt + FIRE_DELAY));
    created.push({ id, at: createdAt });
    await pause(CHANGE_PAUSE);
    const taskId = existing[Math.floor(((index + 0.5) / CHANGES) * existing.length)];
    if (taskId === undefined) throw new Error('there is no task to change');
    const changedAt = Date.now();
    const changes = once(changedAt + FIRE_DELAY);
    await updateTaskCommand({ store, taskId, mayChange() {}, context: contextNow(), changes });
    updated.push({ id: taskId, at: changedAt });
    await pause(CHANGE_PAUSE);
    const lead = PAUSE_LEAD * (index + 1);
    const due = Date.now() + CHANGE_PAUSE + lead;
    const unwanted = await bench.createTask(once(due));
    await pause(due - lead - Date.now());
    const pausedAt = Date.now();
    const command = { store, taskId: unwanted.id, mayChange() {}, context: contextNow() };
    await pauseTaskCommand(command);
    paused.push({ id: unwanted.id, lead: due - pausedAt });
  }
  await pause(AFTERWARDS);
  const leads = await Promise.all(
    paused.map(async ({ id, lead }) => (Number.isFinite(await decidedAt(bench, id)) ? lead : 0)),
  );
  return {
    'create ms': await longest(bench, created),
    'update ms': await longest(bench, updated),
    'pause ms': Math.max(...leads),
  };
}

/** A task and when it was created or changed. */
interface Change {
  readonly id: string;
  readonly at: number;
}

async function longest(bench: BenchStore, changes: readonly Change[]): Promise<number> {
  const took = changes.map(async ({ id, at }) => (await decidedAt(bench, id)) - at);
  return Math.max(...(await Promise.all(took)));
}

/** When a task's last fire was recorded; infinite for none. */
async function decidedAt({ store }: BenchStore, id: string): Promise<number> {
  const page = { direction: 'backwards', limit: 1 } as const;
  const [last] = await store.readStream(streams.fires(id), page);
  return last?.type === 'Fired' ? Date.parse(last.createdAt) : Number.POSITIVE_INFINITY;
}
