import { fromIso, toIso, type Instant } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { BackfillEvent, DataOf } from '../events/catalogue.ts';
import type { EventPlace, Fold } from '../handle.ts';
import type { Timetable } from '../tasks/fires.ts';
import type { BackfillStateName, BackfillStop, OverlapPolicy } from '../vocabulary.ts';

/**
 * A backfill: the nominal times of a span of the past, run after the fact, a few at a time.
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

/** How a run of a backfill can end. */
export type BackfillOutcome = keyof BackfillProgress['outcomes'];

/** Most nominal times of one backfill. */
export const MOST_FIRES = 10_000;

/** Where a client says nothing of `concurrency`, and the most it may say. */
export const DEFAULT_CONCURRENCY = 5;
export const MOST_CONCURRENCY = 100;

/** Of every run of a backfill: behind those of all live fires, whose tasks have 1 to 9. */
export const BACKFILL_PRIORITY = 10;

const atFirst: BackfillProgress = {
  up_to: null,
  requested: 0,
  existing: 0,
  unfinished: [],
  outcomes: { succeeded: 0, failed: 0, canceled: 0, skipped: 0 },
};

export const backfillFold: Fold<BackfillState, BackfillEvent> = {
  initial: { state: 'none' },
  evolve: evolveBackfill,
};

function evolveBackfill(
  state: BackfillState,
  event: BackfillEvent,
  _at: EventPlace,
): BackfillState {
  if (event.type === 'BackfillRequested') {
    return { state: 'running', request: event.data, progress: atFirst };
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
}

/** Whether there is something left to do: nominal times to decide, or runs that have not ended. */
export function isOpen(backfill: BackfillState): backfill is KnownBackfill {
  if (backfill.state === 'running') return true;
  return backfill.state === 'canceled' && backfill.progress.unfinished.length > 0;
}

/** Begins a backfill; the caller has checked the span. */
export function requestBackfill(
  state: BackfillState,
  request: DataOf<'BackfillRequested'>,
): readonly BackfillEvent[] {
  if (state.state !== 'none') throw new Refusal('STATE_CONFLICT', 'this backfill exists');
  return [{ type: 'BackfillRequested', data: request }];
}

/** What is new of a backfill. */
export interface BackfillStep {
  /** Nominal times whose runs have ended, and how. */
  readonly ended: ReadonlyMap<string, BackfillOutcome>;
  /** Up to where all is decided now; as it was where nothing was decided. */
  readonly upTo: string | null;
  /** Nominal times that are to be run. */
  readonly taken: readonly string[];
  /** How many nominal times were left out, as they have a run. */
  readonly existing: number;
  /** No nominal time is left behind `upTo`. */
  readonly exhausted: boolean;
}

/** Writes down what is new; nothing where nothing is. Completed when nothing is left to decide or to end. */
export function advanceBackfill(
  { state, progress }: KnownBackfill,
  step: BackfillStep,
): readonly BackfillEvent[] {
  if (state === 'completed') return [];
  const { ended, upTo, taken, existing, exhausted } = step;
  const outcomes = { ...progress.outcomes };
  const going: string[] = [];
  for (const nominal of progress.unfinished) {
    const outcome = ended.get(nominal);
    if (outcome === undefined) going.push(nominal);
    else outcomes[outcome] += 1;
  }
  const unfinished = [...going, ...taken];
  const changed = upTo !== progress.up_to || going.length < progress.unfinished.length;
  const advanced: BackfillProgress = {
    up_to: upTo,
    requested: progress.requested + taken.length,
    existing: progress.existing + existing,
    unfinished,
    outcomes,
  };
  const completed = state === 'running' && exhausted && unfinished.length === 0;
  return [
    ...(changed ? [{ type: 'BackfillAdvanced' as const, data: advanced }] : []),
    ...(completed ? [{ type: 'BackfillCompleted' as const, data: {} }] : []),
  ];
}

/**
 * Stops a backfill; nothing to do when it was canceled.
 * @throws Refusal `NOT_FOUND`; `STATE_CONFLICT` when it is completed
 */
export function cancelBackfill(state: BackfillState, by: BackfillStop): readonly BackfillEvent[] {
  if (state.state === 'none') throw new Refusal('NOT_FOUND', 'there is no such backfill');
  if (state.state === 'completed') {
    throw new Refusal('STATE_CONFLICT', 'the backfill is completed', { state: state.state });
  }
  return state.state === 'canceled' ? [] : [{ type: 'BackfillCanceled', data: { by } }];
}

/**
 * How many runs of a backfill may be unfinished at once. Where runs of the task must not overlap, one: a second
 * could only stand in line, or be skipped.
 */
export function concurrencyOf(
  { concurrency }: Pick<DataOf<'BackfillRequested'>, 'concurrency'>,
  overlap: OverlapPolicy,
): number {
  return overlap === 'allow' ? concurrency : 1;
}

/**
 * The nominal times of a span behind those that are decided, both ends included.
 * @param most of them; there may be more where there are so many
 */
export function nominalTimes(
  timetable: Pick<Timetable, 'next'>,
  { from, to }: Pick<DataOf<'BackfillRequested'>, 'from' | 'to'>,
  upTo: string | null,
  most: number,
): readonly string[] {
  const times: string[] = [];
  const end = fromIso(to);
  let after: Instant = upTo === null ? fromIso(from) - 1 : fromIso(upTo);
  while (times.length < most) {
    const fire = timetable.next(after);
    if (fire === null || fire.at > end) break;
    times.push(toIso(fire.at));
    after = fire.at;
  }
  return times;
}
