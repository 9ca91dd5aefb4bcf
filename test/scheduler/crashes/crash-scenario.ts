import type { RecordedEvent } from '../../../domain/event-store.ts';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { requestManualRun } from '../../../domain/tasks/task-commands.ts';
import { CrashProcess, type CrashPoint, type Seen } from './crash-process.ts';
import { faultsOfLog, faultsOfSteps, leftToDo } from './crash-checks.ts';
import type { Kind } from './crash-kinds.ts';
import { World } from '../scheduler-world.ts';

/** The outcome of one kind of task after its process died at one point. */
export interface Outcome {
  /** The event types of each append of the first process. */
  readonly appends: readonly string[];
  /** The numbers of the appends that the log accepted, from 1. */
  readonly written: ReadonlySet<number>;
  readonly died: boolean;
  /** Descriptions of what was wrong at the end. */
  readonly faults: readonly string[];
  /** How many runs ended in each way. */
  readonly ends: Readonly<Record<string, number>>;
  /** How many runs were taken over from a dead worker. */
  readonly takenOver: number;
  /** How many runs the second process requested for fires that the first had decided. */
  readonly madeUp: number;
  /** How many calls of steps were repetitions. */
  readonly calledAgain: number;
}

/** All outstanding work must be done by then. Virtual seconds after the start. */
const LIMIT = 300;

/**
 * Lets one process lead a kind of task until it dies at a point. Then starts another process over the same store at
 * the same instant, lets it finish the work, and checks the log.
 *
 * @param points where the first process and each successor dies; the last successor lives
 * @param beside how many other processes run alongside from the beginning
 */
export async function crash(
  kind: Kind,
  points: readonly CrashPoint[],
  beside = 0,
): Promise<Outcome> {
  const world = await World.open();
  const seen: Seen[] = [];
  const processes: CrashProcess[] = [];
  const start = (id: string): CrashProcess => {
    const process = new CrashProcess(world, id, seen);
    processes.push(process);
    return process;
  };
  const lead = (turn: number): CrashProcess => {
    const process = start(`leads ${turn}`);
    const point = points[turn];
    if (point !== undefined) process.crashAt(point);
    process.onDeath = () => void lead(turn + 1);
    return process;
  };
  try {
    for (const [id, fields] of Object.entries(kind.tasks)) await world.createTask(id, fields);
    const first = lead(0);
    for (let n = 1; n <= beside; n += 1) start(`beside ${n}`);
    for (const { ready } of processes) await ready.wait();
    await world.idle();
    const faults = await comesToItsEnd(world, kind);
    const appends = [...first.appends];
    const written = new Set(first.written);
    const log = await world.events();
    faults.push(...faultsOfLog(kind, log), ...faultsOfSteps(log, seen));
    const counts = countsOf(log, seen);
    for (const { failures } of processes) faults.push(...failures.map(String));
    if (faults.length === 0) faults.push(...(await goesOn(world, kind)));
    return { ...counts, appends, written, died: first.store.dead, faults };
  } finally {
    await stopAll(world, processes);
    await world.close();
  }
}

/** @returns what is still unfinished at the time limit */
async function comesToItsEnd(world: World, kind: Kind): Promise<string[]> {
  let left: string | undefined = 'everything';
  for (let second = 0; second < LIMIT; second += 5) {
    if (kind.published && kind.due.includes(second)) {
      const { padding } = kind;
      const payload = padding === undefined ? { second } : { second, padding };
      const event = { topic: 'orders.new', payload, source_agent_id: 'agent-1' };
      await publishEvent(world.store, event, Object.keys(kind.tasks), world.context());
    }
    await world.clock.advance(5000);
    left = leftToDo(kind, await world.events());
    if (left === undefined && second > Math.max(...kind.due)) return [];
  }
  return [`after ${LIMIT} s: ${String(left)}`];
}

/** Checks that no remains of the crash keep a later run from its key or slot. */
async function goesOn(world: World, kind: Kind): Promise<string[]> {
  await world.clock.advance(kind.restsFor ?? 0);
  for (const taskId of Object.keys(kind.tasks)) {
    await requestManualRun(world.store, taskId, await world.task(taskId), world.context());
  }
  for (let second = 0; second < LIMIT; second += 5) {
    await world.clock.advance(5000);
    const log = await world.events();
    const manual = log.filter(
      (event) => event.type === 'RunRequested' && event.data.trigger === 'manual',
    );
    const over = manual.filter(({ stream }) =>
      log.some((event) => event.stream === stream && event.type === 'RunSucceeded'),
    );
    if (over.length === Object.keys(kind.tasks).length) return [];
  }
  return [`a later manual run has not succeeded after ${LIMIT} s`];
}

function countsOf(
  log: readonly RecordedEvent[],
  seen: readonly Seen[],
): Pick<Outcome, 'ends' | 'takenOver' | 'madeUp' | 'calledAgain'> {
  const ends: Record<string, number> = {};
  let takenOver = 0;
  const decidedBy = new Map<string, string>();
  let madeUp = 0;
  for (const event of log) {
    const end = /^Run(Succeeded|Failed|Canceled|Skipped)$/.exec(event.type)?.[1]?.toLowerCase();
    if (end !== undefined) ends[end] = (ends[end] ?? 0) + 1;
    if (event.type === 'RunInterrupted' && event.data.cause === 'lease_expired') takenOver += 1;
    if (event.type === 'Fired') decidedBy.set(`run-${event.data.run_id}`, event.metadata.source);
    if (event.type === 'RunRequested' || event.type === 'RunSkipped') {
      const decider = decidedBy.get(event.stream) ?? event.metadata.source;
      if (event.revision === 0 && decider !== event.metadata.source) madeUp += 1;
    }
  }
  const calls = seen.flatMap((each) => (each.kind === 'call' ? [each.key] : []));
  return { ends, takenOver, madeUp, calledAgain: calls.length - new Set(calls).size };
}

async function stopAll(world: World, processes: readonly CrashProcess[]): Promise<void> {
  const stopped = Promise.all(processes.map((process) => process.stop()));
  // Executions that do not stop are abandoned after ten seconds.
  const isBusy = processes.some(({ store, worker }) => !store.dead && worker.active > 0);
  if (isBusy) await world.clock.advance(15_000);
  await stopped;
}
