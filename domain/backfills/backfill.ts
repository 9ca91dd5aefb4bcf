import { fromIso, toIso, type Instant } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { BackfillEvent, DataOf } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import type { Timetable } from '../tasks/task-schedule.ts';
import type { BackfillStateName, BackfillStop, OverlapPolicy } from '../vocabulary.ts';

/**
 * A backfill runs the nominal times of a past span, a few at a time.
 *
 *   none ──BackfillRequested──► running ──BackfillAdvanced──► running
 *                                  ├──BackfillCompleted──► completed
 *                                  └──BackfillCanceled──► canceled ──BackfillAdvanced──► canceled (its runs end)
 */
export type BackfillState = { readonly state: 'none' } | KnownBackfill;

export interface KnownBackfill {
  readonly state: BackfillStateName;
  readonly request: DataOf<'BackfillRequested'>;
  readonly progress: BackfillProgress;
}

export type BackfillProgress = DataOf<'BackfillAdvanced'>;

export type BackfillOutcome = keyof BackfillProgress['outcomes'];

export const MAX_FIRES = 10_000;

export const DEFAULT_CONCURRENCY = 5;
export const MAX_CONCURRENCY = 100;

/** The priority of backfill runs, after all others: tasks have 1 to 9. */
export const BACKFILL_PRIORITY = 10;

const initialProgress: BackfillProgress = {
  up_to: null,
  requested: 0,
  existing: 0,
  unfinished: [],
  outcomes: { succeeded: 0, failed: 0, canceled: 0, skipped: 0 },
};

export const backfillFold: Fold<BackfillState, BackfillEvent> = {
  initial: { state: 'none' },
  evolve(state, event) {
    if (event.type === 'BackfillRequested') {
      return { state: 'running', request: event.data, progress: initialProgress };
    }
    if (state.state === 'none') return state;
    switch (event.type) {
      case 'BackfillAdvanced':
        return { ...state, progress: event.data };
      case 'BackfillCompleted':
        return { ...state, state: 'completed' };
      case 'BackfillCanceled':
        return { ...state, state: 'canceled' };
    }
  },
};

/** Whether work is left: nominal times to decide, or unfinished runs. */
export function isOpen(backfill: BackfillState): backfill is KnownBackfill {
  if (backfill.state === 'running') return true;
  return backfill.state === 'canceled' && backfill.progress.unfinished.length > 0;
}

export function requestBackfill(
  state: BackfillState,
  request: DataOf<'BackfillRequested'>,
): readonly BackfillEvent[] {
  if (state.state !== 'none')
    throw new RefusalError('STATE_CONFLICT', 'this backfill already exists');
  return [{ type: 'BackfillRequested', data: request }];
}

export interface BackfillStep {
  /** Outcomes of ended runs, by nominal time. */
  readonly ended: ReadonlyMap<string, BackfillOutcome>;
  /** The nominal time up to which all times are decided. */
  readonly upTo: string | null;
  /** Nominal times to run. */
  readonly taken: readonly string[];
  /** Number of nominal times that were left out because they have a run. */
  readonly existing: number;
  /** Whether no nominal time is left after `upTo`. */
  readonly exhausted: boolean;
}

/** Records a step, if it changes anything. The backfill is completed when no nominal time and no run is left. */
export function advanceBackfill(
  { state, progress }: KnownBackfill,
  step: BackfillStep,
): readonly BackfillEvent[] {
  if (state === 'completed') return [];
  const { ended, upTo, taken, existing, exhausted } = step;
  const outcomes = { ...progress.outcomes };
  const running: string[] = [];
  for (const nominal of progress.unfinished) {
    const outcome = ended.get(nominal);
    if (outcome === undefined) running.push(nominal);
    else outcomes[outcome] += 1;
  }
  const unfinished = [...running, ...taken];
  const isChanged = upTo !== progress.up_to || running.length < progress.unfinished.length;
  const advanced: BackfillProgress = {
    up_to: upTo,
    requested: progress.requested + taken.length,
    existing: progress.existing + existing,
    unfinished,
    outcomes,
  };
  const isCompleted = state === 'running' && exhausted && unfinished.length === 0;
  return [
    ...(isChanged ? [{ type: 'BackfillAdvanced' as const, data: advanced }] : []),
    ...(isCompleted ? [{ type: 'BackfillCompleted' as const, data: {} }] : []),
  ];
}

/** Cancels a backfill. @throws RefusalError `NOT_FOUND`; `STATE_CONFLICT` when it is completed */
export function cancelBackfill(state: BackfillState, by: BackfillStop): readonly BackfillEvent[] {
  if (state.state === 'none') throw new RefusalError('NOT_FOUND', 'backfill not found');
  if (state.state === 'completed') {
    throw new RefusalError('STATE_CONFLICT', 'the backfill is already completed', {
      state: state.state,
    });
  }
  return state.state === 'canceled' ? [] : [{ type: 'BackfillCanceled', data: { by } }];
}

/**
 * How many runs may be unfinished at once. If runs of the task must not overlap, it is one, because others could only
 * wait.
 */
export function effectiveConcurrency(
  { concurrency }: Pick<DataOf<'BackfillRequested'>, 'concurrency'>,
  overlap: OverlapPolicy,
): number {
  return overlap === 'allow' ? concurrency : 1;
}

/** The undecided nominal times of a span, ends included; at most `limit` of them. */
export function nominalTimes(
  timetable: Pick<Timetable, 'next'>,
  { from, to }: Pick<DataOf<'BackfillRequested'>, 'from' | 'to'>,
  upTo: string | null,
  limit: number,
): readonly string[] {
  const times: string[] = [];
  const end = fromIso(to);
  let after: Instant = upTo === null ? fromIso(from) - 1 : fromIso(upTo);
  while (times.length < limit) {
    const fire = timetable.next(after);
    if (fire === null || fire.at > end) break;
    times.push(toIso(fire.at));
    after = fire.at;
  }
  return times;
}
