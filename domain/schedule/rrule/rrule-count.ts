import type { Instant } from '../../clock.ts';
import { DAY, HOUR, LAST_DAY, SECOND } from '../civil.ts';
import type { BareRule } from './rrule-rule.ts';
import { isExhausted, limitWork, WorkExceeded } from '../work.ts';
import type { Zone } from '../zone.ts';
import type { FireSource } from '../zoned-fires.ts';

/** Where the calendar ends. */
const END = (LAST_DAY + 1) * DAY;

/** Where clock changes must be looked for, none is that lies much behind the member that is sought. */
const YEAR = 366 * DAY;

/** No zone has left out a day since (Samoa was the last). */
const LAST_LOST_DAY = Date.UTC(2012, 0, 1);

/** A larger COUNT is the same as none: with a fire each minute it takes 1,900 years. */
export const MOST_COUNTED = 1_000_000_000;

/** Most steps of work of counting: what is left of those of compiling is for the rest of the rule. */
const MOST_STEPS = 650_000;

/** Thrown when counting takes more work than it may. */
export class CountTooLarge extends Error {
  override readonly name = 'CountTooLarge';
  /** How far it came. */
  readonly reached: Instant;
  /** How many fires there are up to then. */
  readonly found: number;

  constructor(reached: Instant, found: number) {
    super(`there are ${found} fires by ${reached}`);
    this.reached = reached;
    this.found = found;
  }
}

/** A rule of wall times whose COUNT is to be found. */
export interface CountedRule extends BareRule {
  readonly zoned: FireSource;
  readonly zone: Zone;
  /** Wall time and instant of the rule's start. */
  readonly start: number;
  readonly startInstant: Instant;
}

/**
 * The instant of the COUNT-th fire, so that COUNT can be kept as an end: nothing has to be counted
 * again when the rule is asked. Null when there are fewer up to the end of the calendar.
 *
 * The work grows with the logarithm of COUNT and the length of the span, not with COUNT. Where clock changes may add
 * or remove fires they are looked for through the whole span, and that bounds it: thirty years fit in always.
 * @throws CountTooLarge saying how far it came
 */
export function lastOfCount(rule: CountedRule, count: number): Instant | null {
  const days = LAST_DAY + 1 - Math.floor(rule.start / DAY);
  // A wall time comes twice at most.
  if (days * rule.timesPerDay * 2 < count) return null;
  if (rule.rule.next(rule.start) === null) return null;
  const { zone, startInstant } = rule;
  const fires = (from: number, to: number): number => rule.zoned.count(from, to);
  // Clock changes bring fires of a day together.
  if (!zone.constant && rule.timesPerDay > 1) {
    return nth(fires, startInstant, count, YEAR);
  }
  let from = rule.start;
  let missing = count;
  if (losesDay(zone, startInstant)) {
    // The fire of a day that was left out came together with the next.
    const before = fires(startInstant, LAST_LOST_DAY);
    if (before >= count) return nth(fires, startInstant, count, YEAR);
    from = LAST_LOST_DAY + zone.offsetAt(LAST_LOST_DAY);
    missing -= before;
  }
  const walls = (low: number, high: number): number => rule.rule.count(low, high);
  const wall = nth(walls, from, missing, Infinity);
  return wall === null ? null : zone.resolve(wall).at;
}

/** As {@link lastOfCount}, of a rule that follows elapsed time. */
export function lastOfElapsed(fires: FireSource, start: Instant, count: number): Instant | null {
  return nth((from, to) => fires.count(from, to), start, count, YEAR);
}

/** Whether a zone has left out a whole day since an instant: it then is on the other side of the date line. */
function losesDay(zone: Zone, since: Instant): boolean {
  if (since >= LAST_LOST_DAY) return false;
  return zone.offsetAt(LAST_LOST_DAY) - zone.offsetAt(since) > DAY - 4 * HOUR;
}

/**
 * The number-th member ≥ `start` and before the end of the calendar of a set that can be counted by spans, to the
 * second; null when there are fewer. Spans double, as far as `longest`, until the member is passed, and halve again
 * towards it.
 */
function nth(
  count: (from: number, to: number) => number,
  start: number,
  number: number,
  longest: number,
): number | null {
  let missing = number;
  let from = start;
  let span = DAY;
  const search = (): number | null => {
    for (;;) {
      const to = Math.min(from + span, END);
      const found = count(from, to);
      if (found >= missing) return within(count, from, to, missing);
      if (to >= END) return null;
      missing -= found;
      from = to;
      span = Math.min(span * 2, longest);
    }
  };
  try {
    return limitWork(MOST_STEPS, search);
  } catch (error) {
    // Where nothing is left for the rest of the rule either, the count is not to blame alone.
    if (!(error instanceof WorkExceeded) || isExhausted()) throw error;
    throw new CountTooLarge(from, number - missing);
  }
}

/** The number-th member of [from, to), which holds that many. */
function within(
  count: (from: number, to: number) => number,
  from: number,
  to: number,
  number: number,
): number {
  let low = from;
  let high = to;
  let missing = number;
  while (high - low > SECOND) {
    const middle = low + Math.max(SECOND, Math.floor((high - low) / 2 / SECOND) * SECOND);
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
