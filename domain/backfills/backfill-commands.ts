import { fromIso, toIso, type Instant } from '../clock.ts';
import {
  MAX_FIRES,
  backfillFold,
  cancelBackfill,
  nominalTimes,
  requestBackfill,
  type BackfillState,
} from './backfill.ts';
import { RefusalError, invalidInput, notFound } from '../errors.ts';
import type { EventStore } from '../event-store.ts';
import type { DataOf } from '../events/catalogue.ts';
import { handle, type CommandContext, type Handled } from '../handle.ts';
import { backfillRunId, scheduledRunId } from '../ids.ts';
import type { JsonObject } from '../json.ts';
import { mapInBatches } from '../map-in-batches.ts';
import { namespaceField } from '../namespaces/namespace.ts';
import { streams } from '../streams.ts';
import type { LiveTask } from '../tasks/task.ts';
import { scheduleOf } from '../tasks/task-schedule.ts';
import type { BackfillScope } from '../vocabulary.ts';

const CONCURRENCY = 32;

export interface BackfillParameters {
  readonly from: Instant;
  readonly to: Instant;
  readonly only: BackfillScope;
  readonly concurrency: number;
  /** Replace the task's defaults in all its runs; already checked by its rules. */
  readonly params?: JsonObject | undefined;
}

/**
 * Plans a backfill of a task as it is now.
 * @param earlier backfills of the task with an overlapping span
 * @throws RefusalError `STATE_CONFLICT` for a canceled task or one without a schedule; `INVALID` for a span that is reversed,
 *   ends in the future, or has no nominal time or more than {@link MAX_FIRES}
 */
export function planBackfill(
  taskId: string,
  task: LiveTask,
  { from, to, only, concurrency, params }: BackfillParameters,
  earlier: readonly string[],
  now: Instant,
): DataOf<'BackfillRequested'> {
  const { status, definition, anchor, revision, namespace } = task;
  if (status === 'canceled') {
    throw new RefusalError('STATE_CONFLICT', 'a canceled task cannot be backfilled', { status });
  }
  const { schedule_kind, created_by } = definition;
  if (schedule_kind === 'event') {
    const message = 'a task triggered by events has no times to backfill';
    throw new RefusalError('STATE_CONFLICT', message, { schedule_kind });
  }
  const refuse = (field: 'from' | 'to', issue: string): RefusalError =>
    invalidInput([{ field, issue }]);
  if (to > now) throw refuse('to', `must not be in the future, got ${toIso(to)}`);
  if (from > to) throw refuse('from', 'must not be after to');
  const { count: total } = scheduleOf(definition, anchor).countBetween(from - 1, to);
  if (total === 0) throw refuse('from', 'the schedule has no time between from and to');
  if (total > MAX_FIRES) {
    const issue = `the schedule has ${total} times between from and to; the limit is ${MAX_FIRES}`;
    throw refuse('from', issue);
  }
  return {
    task_id: taskId,
    task_revision: revision,
    created_by,
    from: toIso(from),
    to: toIso(to),
    only,
    concurrency,
    total,
    earlier: [...earlier],
    ...(params === undefined ? {} : { params }),
    ...namespaceField(namespace),
  };
}

/** Begins a backfill. Repeating the command begins no second one. */
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
 * Cancels a backfill. The scheduler then cancels its runs.
 * @throws RefusalError `NOT_FOUND`; `STATE_CONFLICT` for a completed backfill
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

export interface BackfillPreview {
  /** Nominal times that are left out because they have a run. */
  readonly existing: number;
  /** How many nominal times would run. */
  readonly to_request: number;
  /** The first of these times. */
  readonly first: readonly string[];
}

/** Goes through the nominal times of a plan as the backfill would. Appends nothing. */
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
    // Computed a few at a time, because computing all at once would block the event loop.
    const times: readonly string[] = nominalTimes(schedule, plan, upTo, CONCURRENCY);
    const has = await haveRuns(store, plan, times);
    for (const [index, nominal] of times.entries()) {
      if (has[index]) existing += 1;
      else if (first.length < shown) first.push(nominal);
    }
    upTo = times.at(-1) ?? upTo;
    if (times.length < CONCURRENCY) break;
  }
  return { existing, to_request: plan.total - existing, first };
}

/**
 * The nominal times that a backfill leaves out: those whose fire requested a run that was not skipped, with any
 * outcome, and those that an earlier backfill ran and did not cancel. Reads the streams of the runs.
 *
 * @param fired nominal times of fires whose runs may still be requested: they count as having a run
 */
export async function haveRuns(
  store: EventStore,
  { task_id, only, earlier }: DataOf<'BackfillRequested'>,
  times: readonly string[],
  fired: ReadonlySet<string> = new Set(),
): Promise<readonly boolean[]> {
  if (only === 'all') return times.map(() => false);
  return mapInBatches(times, CONCURRENCY, async (nominal) => {
    const fire = await lastTypeOf(store, scheduledRunId(task_id, nominal));
    if (fire === null ? fired.has(nominal) : !neverRan.includes(fire)) return true;
    for (const backfill of earlier) {
      const last = await lastTypeOf(store, backfillRunId(task_id, nominal, backfill));
      if (last !== null && !neverRan.includes(last) && last !== 'RunCanceled') return true;
    }
    return false;
  });
}

/** Last events of a run that did not take place. */
const neverRan: readonly string[] = ['RunSkipped', 'Abandoned'];

async function lastTypeOf(store: EventStore, runId: string): Promise<string | null> {
  const [last] = await store.readStream(streams.run(runId), { direction: 'backwards', limit: 1 });
  return last?.type ?? null;
}

/** Whether two spans, ends included, have an instant in common. */
export function overlaps(
  a: Pick<DataOf<'BackfillRequested'>, 'from' | 'to'>,
  b: { readonly from: Instant; readonly to: Instant },
): boolean {
  return fromIso(a.from) <= b.to && fromIso(a.to) >= b.from;
}
