import { fromIso, toIso, type Instant } from '../clock.ts';
import {
  MOST_FIRES,
  backfillFold,
  cancelBackfill,
  nominalTimes,
  requestBackfill,
  type BackfillState,
} from './backfill.ts';
import { Refusal, invalid, notFound } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { DataOf } from '../events/catalogue.ts';
import { handle, type CommandContext, type Handled } from '../handle.ts';
import { backfillRunId, scheduledRunId } from '../ids.ts';
import { streams } from '../streams.ts';
import type { LiveTask } from '../tasks/task.ts';
import { scheduleOf } from '../tasks/task-commands.ts';
import type { BackfillScope } from '../vocabulary.ts';

/** How many runs are looked up side by side. */
const SIDE_BY_SIDE = 32;

/** What a client asks for. */
export interface BackfillAsk {
  readonly from: Instant;
  readonly to: Instant;
  readonly only: BackfillScope;
  readonly concurrency: number;
}

/**
 * What a backfill of a task as it stands now would be.
 * @param earlier backfills of the task that share some of the span
 * @throws Refusal `STATE_CONFLICT` for a canceled task and one without a schedule of times; `INVALID` for a span that
 *   goes backwards or into the future, has no nominal time, or more than {@link MOST_FIRES}
 */
export function planBackfill(
  taskId: string,
  task: LiveTask,
  ask: BackfillAsk,
  earlier: readonly string[],
  now: Instant,
): DataOf<'BackfillRequested'> {
  const { status, definition, anchor, revision } = task;
  if (status === 'canceled') {
    throw new Refusal('STATE_CONFLICT', "a canceled task can't be backfilled", { status });
  }
  const { schedule_kind, created_by } = definition;
  if (schedule_kind === 'event') {
    const message = 'a task that events trigger has no times that could be backfilled';
    throw new Refusal('STATE_CONFLICT', message, { schedule_kind });
  }
  const { from, to, only, concurrency } = ask;
  if (to > now) throw invalid([{ field: 'to', issue: `lies in the future: ${toIso(to)}` }]);
  if (from > to) throw invalid([{ field: 'from', issue: 'lies after to' }]);
  const { count: total } = scheduleOf(definition, anchor).countBetween(from - 1, to);
  if (total === 0) {
    throw invalid([{ field: 'from', issue: 'the schedule has no time between from and to' }]);
  }
  if (total > MOST_FIRES) {
    const issue = `the schedule has ${total} times between from and to; one backfill may have ${MOST_FIRES}`;
    throw invalid([{ field: 'from', issue }]);
  }
  const span = { from: toIso(from), to: toIso(to) };
  const pinned = { task_id: taskId, task_revision: revision, created_by };
  return { ...pinned, ...span, only, concurrency, total, earlier: [...earlier] };
}

/** Begins a backfill. The same command begins the same one. */
export function requestBackfillCommand(
  store: EventStore,
  backfillId: string,
  request: DataOf<'BackfillRequested'>,
  context: CommandContext,
): Promise<Handled<BackfillState>> {
  return handle({
    store,
    stream: streams.backfill(backfillId),
    fold: backfillFold,
    decide: (state) => requestBackfill(state, request),
    context,
  });
}

/**
 * Stops a backfill by hand. Whoever looks after backfills then cancels its runs.
 * @throws Refusal `NOT_FOUND`, `STATE_CONFLICT` for one that is complete
 */
export function cancelBackfillCommand(options: {
  readonly store: EventStore;
  readonly backfillId: string;
  readonly context: CommandContext;
}): Promise<Handled<BackfillState>> {
  const { store, backfillId, context } = options;
  return handle({
    store,
    stream: streams.backfill(backfillId),
    fold: backfillFold,
    admit: (state) => {
      if (state.state === 'none') throw notFound('backfill', backfillId);
    },
    decide: (state) => cancelBackfill(state, 'request'),
    context,
  });
}

/** What a backfill would do, without doing it. */
export interface BackfillPreview {
  /** Nominal times that have a run and are left out. */
  readonly existing: number;
  /** Nominal times that would be run. */
  readonly to_request: number;
  /** The first of these. */
  readonly first: readonly string[];
}

/** Goes through the nominal times of a plan as the backfill would now. Appends nothing. */
export async function previewBackfill(
  store: EventStore,
  task: LiveTask,
  plan: DataOf<'BackfillRequested'>,
  shown: number,
): Promise<BackfillPreview> {
  const schedule = scheduleOf(task.definition, task.anchor);
  const first: string[] = [];
  let existing = 0;
  let upTo: string | null = null;
  for (;;) {
    const times: readonly string[] = nominalTimes(schedule, plan, upTo, SIDE_BY_SIDE);
    const has = await haveRuns(store, plan, times);
    for (const [index, nominal] of times.entries()) {
      if (has[index]) existing += 1;
      else if (first.length < shown) first.push(nominal);
    }
    upTo = times.at(-1) ?? upTo;
    if (times.length < SIDE_BY_SIDE) break;
  }
  return { existing, to_request: plan.total - existing, first };
}

/**
 * Which of some nominal times a backfill leaves out. One has a run when its fire was requested, whatever became of that
 * run, unless it was then skipped; or when a backfill before this one ran it and was not canceled there.
 * Asks the streams of the runs themselves, at most {@link SIDE_BY_SIDE} at a time.
 *
 * @param fired nominal times of fires whose runs may still be requested: one without a stream counts as having its run
 */
export async function haveRuns(
  store: EventStore,
  { task_id, only, earlier }: DataOf<'BackfillRequested'>,
  times: readonly string[],
  fired: ReadonlySet<string> = new Set(),
): Promise<readonly boolean[]> {
  if (only === 'all') return times.map(() => false);
  const hasRun = async (nominal: string): Promise<boolean> => {
    const fire = await lastTypeOf(store, scheduledRunId(task_id, nominal));
    if (fire === null ? fired.has(nominal) : !without.includes(fire)) return true;
    for (const backfill of earlier) {
      const last = await lastTypeOf(store, backfillRunId(task_id, nominal, backfill));
      if (last !== null && !without.includes(last) && last !== 'RunCanceled') return true;
    }
    return false;
  };
  const has: boolean[] = [];
  for (let at = 0; at < times.length; at += SIDE_BY_SIDE) {
    has.push(...(await Promise.all(times.slice(at, at + SIDE_BY_SIDE).map(hasRun))));
  }
  return has;
}

/** Last events of a run that did not take place. */
const without: readonly string[] = ['RunSkipped', 'Abandoned'];

async function lastTypeOf(store: EventStore, runId: string): Promise<string | null> {
  const [last] = await store.readStream(streams.run(runId), { direction: 'backwards', limit: 1 });
  return last?.type ?? null;
}

/** Whether two spans of time, each with its ends, have an instant in common. */
export function overlaps(
  a: Pick<DataOf<'BackfillRequested'>, 'from' | 'to'>,
  b: { readonly from: Instant; readonly to: Instant },
): boolean {
  return fromIso(a.from) <= b.to && fromIso(a.to) >= b.from;
}
