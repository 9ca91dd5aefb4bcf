import { fromIso, type Instant } from '../../domain/clock.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { addDuration, withDuration, type Histogram } from './histogram.ts';

/** The resolution of the statistics. The offset of every time zone from UTC is a multiple of it since 1972. */
export const QUARTER = 900_000;

/** Runs that ended or were skipped in a quarter of an hour. */
export type Quarter = {
  readonly total: number;
  readonly failed: number;
  readonly execution_ms: number;
  readonly histogram: Histogram;
  /** Left out if 0. */
  readonly skipped?: number;
};

/** Keyed by the number of the quarter hour in its UTC day, 0 to 95. Empty ones are left out. */
export type Quarters<Q> = { readonly [quarter: string]: Q };

/** Runs that succeeded or failed on one UTC day: those of one task, or of all tasks of a namespace. */
export type DayDocument = JsonObject & {
  /** The task's id, or `all`. */
  readonly scope: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  /** `YYYY-MM-DD`. */
  readonly day: string;
  readonly total: number;
  readonly successful: number;
  readonly failed: number;
  /** Sum over the runs in milliseconds, each from its first start to its end. */
  readonly execution_ms: number;
  readonly histogram: Histogram;
  readonly last_run: string | null;
  readonly last_success: string | null;
  readonly last_failure: string | null;
  /** Left out if 0. */
  readonly skipped?: number;
  /** Runs counted by older releases are missing here. */
  readonly quarters?: Quarters<Quarter>;
};

export type EndedEvent = Extract<RecordedEvent, { type: 'RunSucceeded' | 'RunFailed' }>;

const emptyQuarter: Quarter = { total: 0, failed: 0, execution_ms: 0, histogram: {} };

/** A day without runs. */
export function emptyDay(scope: string, day: string, namespace?: string): DayDocument {
  const none = { total: 0, successful: 0, failed: 0, execution_ms: 0, histogram: {} };
  const place = namespace === undefined ? {} : { namespace };
  const last = { last_run: null, last_success: null, last_failure: null };
  return { scope, day, ...place, ...none, ...last, quarters: {} };
}

/** The UTC day of a timestamp in the service's format. */
export function dayOf(timestamp: string): string {
  return timestamp.slice(0, 10);
}

/** The start of a UTC day. */
export function startOfDay(day: string): Instant {
  return fromIso(`${day}T00:00:00.000Z`);
}

/** The number of a timestamp's quarter hour in its UTC day. */
export function quarterOf(timestamp: string): number {
  return Number(timestamp.slice(11, 13)) * 4 + Math.floor(Number(timestamp.slice(14, 16)) / 15);
}

/** How long a run took, in milliseconds. Clocks of two workers may differ a little. */
export function durationOf({ metadata, data }: EndedEvent): number {
  return Math.max(0, fromIso(metadata.occurredAt) - fromIso(data.started_at));
}

/** The day with one more ended run. @param own whether the day may be changed in place, as for `Projection.evolve` */
export function withEnded(day: DayDocument, event: EndedEvent, own: boolean): DayDocument {
  const finished = event.metadata.occurredAt;
  const took = durationOf(event);
  const succeeded = event.type === 'RunSucceeded';
  const { scope, day: date, total, successful, failed, last_success, last_failure } = day;
  const add = own ? addDuration : withDuration;
  const number = quarterOf(finished);
  const before = day.quarters?.[number] ?? { ...emptyQuarter, histogram: {} };
  const quarter = {
    ...before,
    total: before.total + 1,
    failed: before.failed + (succeeded ? 0 : 1),
    execution_ms: before.execution_ms + took,
    histogram: add(before.histogram, took),
  };
  // Written without a spread, because it executes twice per run, and all days then have one shape.
  const next: DayDocument = {
    scope,
    day: date,
    total: total + 1,
    successful: successful + (succeeded ? 1 : 0),
    failed: failed + (succeeded ? 0 : 1),
    execution_ms: day.execution_ms + took,
    histogram: add(day.histogram, took),
    last_run: later(day.last_run, finished),
    last_success: succeeded ? later(last_success, finished) : last_success,
    last_failure: succeeded ? last_failure : later(last_failure, finished),
    quarters: withQuarter(day.quarters, number, quarter, own),
  };
  return withRest(next, day);
}

/** The day with one more skipped run. */
export function withSkipped(day: DayDocument, at: string, own: boolean): DayDocument {
  const number = quarterOf(at);
  const before = day.quarters?.[number] ?? { ...emptyQuarter, histogram: {} };
  const quarter = { ...before, skipped: (before.skipped ?? 0) + 1 };
  const quarters = withQuarter(day.quarters, number, quarter, own);
  return { ...day, skipped: (day.skipped ?? 0) + 1, quarters };
}

/** The later of two timestamps. */
export function later(one: string | null, other: string): string {
  return one !== null && one > other ? one : other;
}

/** The quarters with one of them replaced. @param own whether they may be changed in place */
export function withQuarter<Q>(
  quarters: Quarters<Q> | undefined,
  number: number,
  quarter: Q,
  own: boolean,
): Quarters<Q> {
  if (!own || quarters === undefined) return { ...quarters, [number]: quarter };
  (quarters as Record<string, Q>)[number] = quarter;
  return quarters;
}

/** Fields that most days lack. */
function withRest(next: DayDocument, { namespace, skipped }: DayDocument): DayDocument {
  if (namespace === undefined && skipped === undefined) return next;
  const place = namespace === undefined ? {} : { namespace };
  return { ...next, ...place, ...(skipped === undefined ? {} : { skipped }) };
}
