import {
  bitCount,
  civilOf,
  DAY,
  dayOf,
  lowestBit,
  MAX_YEAR,
  monthLength,
  SECOND,
  SECONDS_PER_DAY,
  sortedUnique,
} from '../civil.ts';
import { dayOfWeek, weekOf } from './rrule-calendar.ts';
import type { DayCalendar, WallRule } from '../wall-rule.ts';
import { spend } from '../work-limit.ts';

/** The period within which BYSETPOS chooses. */
export type PositionUnit = 'YEARLY' | 'MONTHLY' | 'WEEKLY';

/** The calendar repeats after this many periods; a rule without a fire by then has none. */
const cycles: Readonly<Record<PositionUnit, number>> = {
  YEARLY: 400,
  MONTHLY: 4800,
  WEEKLY: 20_871,
};

/** Cost of checking a period and a month, in work steps. */
const PERIOD_COST = 30;
const MONTH_COST = 12;

/** A search over this many periods or more is cached. */
const MIN_CACHED_PERIODS = 24;

/** The indexes of positions (1 is the first, −1 the last) in a set, ascending. */
export function positionIndexes(positions: readonly number[], size: number): number[] {
  const indexes = positions.map((position) => (position > 0 ? position - 1 : size + position));
  return sortedUnique(indexes.filter((index) => index >= 0 && index < size));
}

/** Parameters of {@link SetPositionRule}. */
export interface SetPositionShape {
  readonly unit: PositionUnit;
  readonly positions: readonly number[];
  readonly calendar: DayCalendar;
  readonly weekStart: number;
  /** The times of each day, in seconds. */
  readonly times: readonly number[];
  /** An upper bound of the days of a period. */
  readonly maxDays: number;
  /** Weeks between selected periods, and the day from which they count. */
  readonly interval: number;
  readonly startDay: number;
  /** Whether all periods have the same number of fires: weeks without BYMONTH. */
  readonly sameEveryPeriod: boolean;
}

/**
 * A yearly, monthly or weekly RRULE with BYSETPOS: of each period's days × times, those at the
 * given positions. Periods are independent of each other.
 */
export class SetPositionRule implements WallRule {
  readonly #shape: SetPositionShape;
  readonly #start: number;
  readonly #possible: boolean;
  #period = NaN;
  #walls: readonly number[] = [];
  #emptyFrom = Infinity;
  /** The span of the last long search backwards, both ends included, and its result. */
  #behind: { readonly from: number; readonly to: number; readonly found: number | null } | null =
    null;
  /** Indexes of the positions, by set size. */
  readonly #indexes = new Map<number, readonly number[]>();

  /** @param start the first wall time at which the rule may fire */
  constructor(shape: SetPositionShape, start: number) {
    this.#shape = shape;
    this.#start = start;
    const largest = shape.maxDays * shape.times.length;
    this.#possible = shape.positions.some((position) => Math.abs(position) <= largest);
  }

  next(wall: number): number | null {
    const from = Math.max(wall, this.#start);
    if (!this.#possible || from >= this.#emptyFrom) return null;
    let period = this.#seek(this.#periodOf(from), 1);
    for (let tries = cycles[this.#shape.unit]; tries >= 0 && this.#inRange(period); tries--) {
      for (const found of this.#wallsOf(period)) if (found >= from) return found;
      period = this.#following(period);
    }
    this.#emptyFrom = from;
    return null;
  }

  previous(wall: number): number | null {
    if (!this.#possible || wall < this.#start) return null;
    const known = this.#behind;
    if (known !== null && wall >= known.from && wall <= known.to) return known.found;
    const earliest = this.#periodOf(this.#start);
    let period = this.#seek(this.#periodOf(wall), -1);
    let tries = 0;
    let found: number | undefined;
    while (found === undefined && tries <= cycles[this.#shape.unit] && period >= earliest) {
      found = this.#wallsOf(period).findLast((at) => at <= wall);
      period = this.#seek(period - 1, -1);
      tries += 1;
    }
    const result = found === undefined || found < this.#start ? null : found;
    if (tries >= MIN_CACHED_PERIODS)
      this.#behind = { from: result ?? -Infinity, to: wall, found: result };
    return result;
  }

  count(from: number, to: number): number {
    const low = Math.max(from, this.#start);
    if (!this.#possible || to <= low) return 0;
    let total = 0;
    const first = this.#periodOf(low);
    const last = this.#periodOf(to);
    for (let period = this.#seek(first, 1); period <= last && this.#inRange(period);) {
      if (period === first || period === last) {
        for (const wall of this.#wallsOf(period)) if (wall >= low && wall < to) total++;
      } else {
        total += this.#sizeOf(period);
      }
      period = this.#following(period);
      const { sameEveryPeriod, interval } = this.#shape;
      if (sameEveryPeriod && period < last) {
        // All whole weeks in between have the same number of fires.
        const whole = Math.ceil((last - period) / interval);
        total += whole * this.#sizeOf(period);
        period += whole * interval;
      }
    }
    return total;
  }

  /** The next period; skips weeks in months that do not match. */
  #following(period: number): number {
    const { unit, calendar, weekStart, sameEveryPeriod } = this.#shape;
    if (unit !== 'WEEKLY' || sameEveryPeriod) return this.#seek(period + 1, 1);
    const following = dayOfWeek(period + 1, weekStart);
    const { year, month } = civilOf(following);
    const index = year * 12 + month - 1;
    const named = calendar.nextMonth(index);
    if (named === index) return this.#seek(period + 1, 1);
    const day = dayOf(Math.floor(named / 12), (named % 12) + 1, 1);
    return this.#seek(weekOf(Math.max(following, day), weekStart), 1);
  }

  /** A period is numbered by year, by month (`year * 12 + month - 1`) or by week. */
  #periodOf(wall: number): number {
    const day = Math.floor(wall / DAY);
    if (this.#shape.unit === 'WEEKLY') return weekOf(day, this.#shape.weekStart);
    const { year, month } = civilOf(day);
    return this.#shape.unit === 'YEARLY' ? year : year * 12 + month - 1;
  }

  /** The nearest period ≥ (or ≤) the given one that INTERVAL selects. */
  #seek(period: number, direction: 1 | -1): number {
    const { unit, calendar, interval, startDay, weekStart } = this.#shape;
    if (unit === 'WEEKLY') {
      const off = direction * (weekOf(startDay, weekStart) - period);
      return period + direction * (((off % interval) + interval) % interval);
    }
    const seek = (month: number): number =>
      direction > 0 ? calendar.nextMonth(month) : calendar.previousMonth(month);
    if (unit === 'MONTHLY') return seek(period);
    return Math.floor(seek(period * 12 + (direction > 0 ? 0 : 11)) / 12);
  }

  #inRange(period: number): boolean {
    switch (this.#shape.unit) {
      case 'YEARLY':
        return period <= MAX_YEAR;
      case 'MONTHLY':
        return period < (MAX_YEAR + 1) * 12;
      case 'WEEKLY':
        return period < weekOf(dayOf(MAX_YEAR, 12, 25), 0);
    }
  }

  #wallsOf(period: number): readonly number[] {
    if (period === this.#period) return this.#walls;
    const { times } = this.#shape;
    const days = this.#daysOf(period);
    const indexes = this.#indexesIn(days.length);
    spend(Math.ceil((days.length + indexes.length) / 2));
    const walls = indexes.map((index) => {
      const day = days[Math.floor(index / times.length)] ?? 0;
      const time = times[index % times.length] ?? 0;
      return (day * SECONDS_PER_DAY + time) * SECOND;
    });
    this.#period = period;
    this.#walls = walls;
    return walls;
  }

  /** The number of wall times in a period. */
  #sizeOf(period: number): number {
    const { unit, calendar } = this.#shape;
    if (unit === 'WEEKLY') return this.#indexesIn(this.#daysOf(period).length).length;
    const all = unit === 'YEARLY' ? calendar.daysOfYear(period) : null;
    if (all !== null) return this.#indexesIn(all).length;
    let days = 0;
    for (const { mask } of this.#monthsOf(period)) days += bitCount(mask);
    return this.#indexesIn(days).length;
  }

  /** The indexes of the positions in a set of so many days × times. */
  #indexesIn(days: number): readonly number[] {
    spend(PERIOD_COST);
    let indexes = this.#indexes.get(days);
    if (indexes === undefined) {
      const { positions, times } = this.#shape;
      spend(positions.length * 10);
      indexes = positionIndexes(positions, days * times.length);
      this.#indexes.set(days, indexes);
    }
    return indexes;
  }

  #daysOf(period: number): number[] {
    const days: number[] = [];
    const { unit, weekStart, calendar } = this.#shape;
    spend(PERIOD_COST);
    if (unit === 'WEEKLY') {
      const first = dayOfWeek(period, weekStart);
      const start = civilOf(first);
      let index = start.year * 12 + start.month - 1;
      // The week's days in the month in which it begins, then those in the next month.
      let monthStart = first - start.day + 1;
      for (let rest = 2; rest > 0; rest--, index++) {
        const year = Math.floor(index / 12);
        const month = (index % 12) + 1;
        const named = calendar.nextMonth(index) === index;
        for (let bits = named ? calendar.mask(year, month) : 0; bits !== 0; bits &= bits - 1) {
          const day = monthStart + lowestBit(bits);
          if (day >= first && day < first + 7) days.push(day);
        }
        monthStart += monthLength(year, month);
        if (monthStart >= first + 7) break;
      }
      return days;
    }
    for (const { first, mask } of this.#monthsOf(period)) {
      for (let bits = mask; bits !== 0; bits &= bits - 1) days.push(first + lowestBit(bits));
    }
    return days;
  }

  /** The first day and the matching days (as bits) of each month of a year or month. */
  *#monthsOf(period: number): Generator<{ readonly first: number; readonly mask: number }> {
    const { unit, calendar } = this.#shape;
    const from = unit === 'YEARLY' ? period * 12 : period;
    const to = unit === 'YEARLY' ? from + 12 : from + 1;
    for (let index = calendar.nextMonth(from); index < to; index = calendar.nextMonth(index + 1)) {
      spend(MONTH_COST);
      const [year, month] = [Math.floor(index / 12), (index % 12) + 1];
      yield { first: dayOf(year, month, 1), mask: calendar.mask(year, month) };
    }
  }
}
