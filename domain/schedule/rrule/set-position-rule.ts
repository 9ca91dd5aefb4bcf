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
} from '../civil.ts';
import { dayOfWeek, weekOf } from './rrule-calendar.ts';
import type { DayCalendar, WallRule } from '../wall-rule.ts';
import { spend } from '../work.ts';

/** The span that BYSETPOS chooses within. */
export type PositionUnit = 'YEARLY' | 'MONTHLY' | 'WEEKLY';

/** After so many periods the calendar repeats, so what was not found within them never comes. */
const cycles: Readonly<Record<PositionUnit, number>> = {
  YEARLY: 400,
  MONTHLY: 4800,
  WEEKLY: 20_871,
};

/** Steps of work to look at a period, and at a month. */
const PERIOD = 30;
const MONTH = 12;

/** A search over so many periods is worth remembering. */
const LONG = 24;

/** The positions (1 is the first, −1 the last) of a set, as indexes in order. */
export function positionIndexes(positions: readonly number[], size: number): number[] {
  const indexes = new Set<number>();
  for (const position of positions) {
    const index = position > 0 ? position - 1 : size + position;
    if (index >= 0 && index < size) indexes.add(index);
  }
  return [...indexes].sort((a, b) => a - b);
}

/** What a rule with BYSETPOS is made of. */
export interface SetPositionShape {
  readonly unit: PositionUnit;
  readonly positions: readonly number[];
  readonly calendar: DayCalendar;
  readonly weekStart: number;
  /** The times of each day, in seconds. */
  readonly times: readonly number[];
  /** Most days that one period can have. */
  readonly maxDays: number;
  /** Weeks from one period to the next, and the day it counts from. */
  readonly interval: number;
  readonly startDay: number;
  /** Whether every period has as many fires: weeks, where no month is left out. */
  readonly sameEveryPeriod: boolean;
}

/**
 * A yearly, monthly or weekly RRULE with BYSETPOS: of each period's days × times those at some
 * positions. A period's set depends on nothing before it, so any period can be asked at once.
 */
export class SetPositionRule implements WallRule {
  readonly #shape: SetPositionShape;
  readonly #start: number;
  readonly #possible: boolean;
  #period = NaN;
  #walls: readonly number[] = [];
  #barren = Infinity;
  /** Walls that the last long search backwards went through, both ends included, and what it found before them. */
  #behind: { readonly from: number; readonly to: number; readonly found: number | null } | null =
    null;
  /** What the positions come to, by the size of the set they choose from. */
  readonly #indexes = new Map<number, readonly number[]>();

  /** `start` is the first wall at which the rule may fire. */
  constructor(shape: SetPositionShape, start: number) {
    this.#shape = shape;
    this.#start = start;
    const largest = shape.maxDays * shape.times.length;
    this.#possible = shape.positions.some((position) => Math.abs(position) <= largest);
  }

  next(wall: number): number | null {
    const from = Math.max(wall, this.#start);
    if (!this.#possible || from >= this.#barren) return null;
    let period = this.#seek(this.#periodOf(from), 1);
    for (let tries = cycles[this.#shape.unit]; tries >= 0 && this.#inRange(period); tries--) {
      for (const found of this.#wallsOf(period)) if (found >= from) return found;
      period = this.#following(period);
    }
    this.#barren = from;
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
    if (tries >= LONG) this.#behind = { from: result ?? -Infinity, to: wall, found: result };
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
        // All whole weeks between the first and the last are alike.
        const whole = Math.ceil((last - period) / interval);
        total += whole * this.#sizeOf(period);
        period += whole * interval;
      }
    }
    return total;
  }

  /** The next period; weeks in months that are not named are passed over. */
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

  /** Periods are counted as years, months (`year * 12 + month - 1`) or weeks. */
  #periodOf(wall: number): number {
    const day = Math.floor(wall / DAY);
    if (this.#shape.unit === 'WEEKLY') return weekOf(day, this.#shape.weekStart);
    const { year, month } = civilOf(day);
    return this.#shape.unit === 'YEARLY' ? year : year * 12 + month - 1;
  }

  /** The nearest period ≥ (or ≤) one that the interval meets. */
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

  /** How many walls a period has. */
  #sizeOf(period: number): number {
    const { unit, calendar } = this.#shape;
    if (unit === 'WEEKLY') return this.#indexesIn(this.#daysOf(period).length).length;
    const all = unit === 'YEARLY' ? calendar.daysOfYear(period) : null;
    if (all !== null) return this.#indexesIn(all).length;
    let days = 0;
    const from = unit === 'YEARLY' ? period * 12 : period;
    const to = unit === 'YEARLY' ? from + 12 : from + 1;
    for (let index = calendar.nextMonth(from); index < to; index = calendar.nextMonth(index + 1)) {
      spend(MONTH);
      days += bitCount(calendar.mask(Math.floor(index / 12), (index % 12) + 1));
    }
    return this.#indexesIn(days).length;
  }

  /** What the positions come to in a set of so many days. */
  #indexesIn(days: number): readonly number[] {
    spend(PERIOD);
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
    spend(PERIOD);
    if (unit === 'WEEKLY') {
      const first = dayOfWeek(period, weekStart);
      const start = civilOf(first);
      let index = start.year * 12 + start.month - 1;
      // The week's days in the month it begins in, then those in the next.
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
    const from = unit === 'YEARLY' ? period * 12 : period;
    const to = unit === 'YEARLY' ? from + 12 : from + 1;
    for (let index = calendar.nextMonth(from); index < to; index = calendar.nextMonth(index + 1)) {
      spend(MONTH);
      const year = Math.floor(index / 12);
      const first = dayOf(year, (index % 12) + 1, 1);
      for (let bits = calendar.mask(year, (index % 12) + 1); bits !== 0; bits &= bits - 1) {
        days.push(first + lowestBit(bits));
      }
    }
    return days;
  }
}
