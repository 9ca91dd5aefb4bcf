import type { Instant } from '../../clock.ts';
import { DAY, HOUR, LAST_DAY, SECOND } from '../civil.ts';
import type { FireSource } from '../fire-sets.ts';
import type { BareRule } from './wall-rules.ts';
import { isExhausted, limitWork, WorkLimitError } from '../work-limit.ts';
import type { Zone } from '../zone.ts';

/** The end of the calendar. */
const END = (LAST_DAY + 1) * DAY;

/** The longest span counted at once. It is limited so that counting does not go far beyond the sought fire. */
const MAX_SPAN = 366 * DAY;

/** The last time a zone skipped a whole day was in Samoa, shortly before. */
const LAST_SKIPPED_DAY = Date.UTC(2012, 0, 1);

/** A larger COUNT is ignored: with a fire each minute it would take 1,900 years. */
export const MAX_COUNT = 1_000_000_000;

/** The most work steps for counting. The rest of the compile limit is for the other parts of the rule. */
const MAX_COUNTING_STEPS = 1_100_000;

/** The error if counting took more work steps than allowed. */
export class CountTooLargeError extends Error {
  override readonly name = 'CountTooLargeError';
  /** The instant up to which fires were counted. */
  readonly reached: Instant;
  /** The number of fires up to then. */
  readonly found: number;

  constructor(reached: Instant, found: number) {
    super(`counted ${found} fires up to ${reached}`);
    this.reached = reached;
    this.found = found;
  }
}

/** A rule of wall times with a COUNT. */
export interface CountedRule extends BareRule {
  readonly zoned: FireSource;
  readonly zone: Zone;
  /** The rule's start as a wall time and as an instant. */
  readonly start: number;
  readonly startInstant: Instant;
}

/**
 * The instant of the COUNT-th fire, or null if there are fewer. With this end, queries need not count.
 *
 * The work grows with the logarithm of COUNT and the length of the span, not with COUNT. If clock changes may add or
 * remove fires, every change of the span is checked; thirty years always fit the limit.
 * @throws CountTooLargeError saying how far it counted
 */
export function lastOfCount(rule: CountedRule, count: number): Instant | null {
  const days = LAST_DAY + 1 - Math.floor(rule.start / DAY);
  // A wall time occurs at most twice.
  if (days * rule.timesPerDay * 2 < count) return null;
  if (rule.rule.next(rule.start) === null) return null;
  const { zone, startInstant } = rule;
  const fires = (from: number, to: number): number => rule.zoned.count(from, to);
  // Clock changes can merge fires of the same day.
  if (!zone.constant && rule.timesPerDay > 1) {
    return nth(fires, startInstant, count, MAX_SPAN);
  }
  let from = rule.start;
  let remaining = count;
  if (skipsDay(zone, startInstant)) {
    // The fire of a skipped day coincided with the next one.
    const before = fires(startInstant, LAST_SKIPPED_DAY);
    if (before >= count) return nth(fires, startInstant, count, MAX_SPAN);
    from = LAST_SKIPPED_DAY + zone.offsetAt(LAST_SKIPPED_DAY);
    remaining -= before;
  }
  const walls = (low: number, high: number): number => rule.rule.count(low, high);
  const wall = nth(walls, from, remaining, Infinity);
  return wall === null ? null : zone.resolve(wall).at;
}

/** Like {@link lastOfCount}, for a rule that follows elapsed time. */
export function lastOfElapsed(fires: FireSource, start: Instant, count: number): Instant | null {
  return nth((from, to) => fires.count(from, to), start, count, MAX_SPAN);
}

/** Whether a zone has skipped a whole day since an instant by crossing the date line. */
function skipsDay(zone: Zone, since: Instant): boolean {
  if (since >= LAST_SKIPPED_DAY) return false;
  return zone.offsetAt(LAST_SKIPPED_DAY) - zone.offsetAt(since) > DAY - 4 * HOUR;
}

/**
 * The n-th member ≥ `start` of a set that can be counted by spans, to the second; null if there are fewer before the
 * end of the calendar. Spans double, up to `maxSpan`, until they contain the member. Bisection then finds it.
 */
function nth(
  count: (from: number, to: number) => number,
  start: number,
  n: number,
  maxSpan: number,
): number | null {
  let remaining = n;
  let from = start;
  let span = DAY;
  const search = (): number | null => {
    for (;;) {
      const to = Math.min(from + span, END);
      const found = count(from, to);
      if (found >= remaining) return bisect(count, from, to, remaining);
      if (to >= END) return null;
      remaining -= found;
      from = to;
      span = Math.min(span * 2, maxSpan);
    }
  };
  try {
    return limitWork(MAX_COUNTING_STEPS, search);
  } catch (error) {
    // If no steps are left, the whole rule is too expensive, not only its COUNT.
    if (!(error instanceof WorkLimitError) || isExhausted()) throw error;
    throw new CountTooLargeError(from, n - remaining);
  }
}

/** The n-th member of [from, to), by bisection; the span has that many. */
function bisect(
  count: (from: number, to: number) => number,
  from: number,
  to: number,
  n: number,
): number {
  let low = from;
  let high = to;
  let remaining = n;
  while (high - low > SECOND) {
    const middle = low + Math.max(SECOND, Math.floor((high - low) / 2 / SECOND) * SECOND);
    const found = count(low, middle);
    if (found >= remaining) {
      high = middle;
    } else {
      remaining -= found;
      low = middle;
    }
  }
  return low;
}
