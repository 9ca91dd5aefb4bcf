import type { Instant } from '../clock.ts';
import { DAY, LAST_DAY, SECOND } from './civil.ts';
import type { BareRule } from './rrule-rule.ts';
import { ScheduleError } from './schedule-error.ts';
import type { Zone } from './zone.ts';
import type { FireSource } from './zoned-fires.ts';

/** COUNT is followed through the clock changes of so many years, which takes 5 ms at most. */
const MAX_YEARS = 30;
const MAX_SPAN = MAX_YEARS * 365.25 * DAY;
/** A small COUNT is followed to the end of the calendar; a larger one up to here. */
const SMALL_COUNT = 1000;
const LAST_COUNTED = Date.UTC(2200, 0, 1);

/** A rule whose COUNT is to be found. */
export interface CountedRule extends BareRule {
  readonly zoned: FireSource;
  readonly zone: Zone;
  readonly elapsed: boolean;
  /** Wall time and instant of the rule's start. */
  readonly start: number;
  readonly startInstant: Instant;
}

/**
 * The instant of the COUNT-th fire, so that COUNT can be kept as an end: nothing has to be counted
 * again when the rule is asked. Null when there are fewer, or when a COUNT over 1,000 reaches beyond
 * the year 2200, which is no end for anyone. The work grows with the
 * logarithm of COUNT and the length of the span, not with COUNT.
 * @throws ScheduleError when an hourly or minutely rule's COUNT reaches further than 30 years.
 */
export function lastOfCount(rule: CountedRule, count: number): Instant | null {
  const { zoned, startInstant } = rule;
  // Clock changes add and remove fires of elapsed rules, and bring fixed ones of a day together.
  if (!rule.zone.constant && (rule.elapsed || rule.timesPerDay > 1)) {
    const limit = startInstant + MAX_SPAN;
    const found = nth((from, to) => zoned.count(from, to), startInstant, limit, SECOND, count);
    if (found !== null) return found;
    if (rule.elapsed && zoned.next(limit) !== null) {
      throw new ScheduleError(
        'schedule_expr',
        `COUNT=${count} reaches further than ${MAX_YEARS} years from the start, which takes too long to ` +
          `count; leave it out, or give an UNTIL`,
      );
    }
  }
  const walls = (from: number, to: number): number => rule.rule.count(from, to);
  if (rule.rule.next(rule.start) === null) return null;
  const limit = count <= SMALL_COUNT ? (LAST_DAY + 1) * DAY : Math.max(LAST_COUNTED, rule.start);
  const wall = nth(walls, rule.start, limit, SECOND, count);
  return wall === null ? null : rule.zone.resolve(wall).at;
}

/**
 * The number-th member ≥ `start` and < `limit` of a set that can be counted by spans, as a multiple
 * of `unit` from `start`; null when there are fewer. Spans double until the member is passed, and
 * halve again towards it.
 */
function nth(
  count: (from: number, to: number) => number,
  start: number,
  limit: number,
  unit: number,
  number: number,
): number | null {
  let missing = number;
  let from = start;
  let span = DAY;
  for (;;) {
    const to = Math.min(from + span, limit);
    const found = count(from, to);
    if (found >= missing) return within(count, from, to, unit, missing);
    if (to >= limit) return null;
    missing -= found;
    from = to;
    span *= 2;
  }
}

/** The number-th member of [from, to), which holds that many. */
function within(
  count: (from: number, to: number) => number,
  from: number,
  to: number,
  unit: number,
  number: number,
): number {
  let low = from;
  let high = to;
  let missing = number;
  while (high - low > unit) {
    const middle = low + Math.max(unit, Math.floor((high - low) / 2 / unit) * unit);
    const found = count(low, middle);
    if (found >= missing) {
      high = middle;
    } else {
      missing -= found;
      low = middle;
    }
  }
  return low;
}
