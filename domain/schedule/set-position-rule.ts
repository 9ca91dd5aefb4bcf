import {
  civilOf,
  DAY,
  dayOf,
  lowestBit,
  MAX_YEAR,
  monthLength,
  SECOND,
  SECONDS_PER_DAY,
} from './civil.ts';
import { weekOf } from './rrule-calendar.ts';
import type { DayCalendar, WallRule } from './wall-rule.ts';

/** The span that BYSETPOS chooses within. */
export type PositionUnit = 'YEARLY' | 'MONTHLY' | 'WEEKLY';

/** After so many periods the calendar repeats, so what was not found within them never comes. */
const cycles: Readonly<Record<PositionUnit, number>> = {
  YEARLY: 400,
  MONTHLY: 4800,
  WEEKLY: 20_871,
};

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
      period = this.#seek(period + 1, 1);
    }
    this.#barren = from;
    return null;
  }

  previous(wall: number): number | null {
    if (!this.#possible) return null;
    const earliest = this.#periodOf(this.#start);
    let period = this.#seek(this.#periodOf(wall), -1);
    for (let tries = cycles[this.#shape.unit]; tries >= 0 && period >= earliest; tries--) {
      const found = this.#wallsOf(period).findLast((at) => at <= wall);
      if (found !== undefined) return found < this.#start ? null : found;
      period = this.#seek(period - 1, -1);
    }
    return null;
  }

  count(from: number, to: number): number {
    const low = Math.max(from, this.#start);
    if (!this.#possible || to <= low) return 0;
    let total = 0;
    const last = this.#periodOf(to);
    const first = this.#seek(this.#periodOf(low), 1);
    for (let period = first; period <= last && this.#inRange(period);) {
      for (const wall of this.#wallsOf(period)) if (wall >= low && wall < to) total++;
      period = this.#seek(period + 1, 1);
      const { sameEveryPeriod, interval } = this.#shape;
      if (sameEveryPeriod && period < last) {
        // All whole weeks between the first and the last are alike.
        const whole = Math.ceil((last - period) / interval);
        total += whole * this.#wallsOf(period).length;
        period += whole * interval;
      }
    }
    return total;
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
    const { positions, times } = this.#shape;
    const days = this.#daysOf(period);
    const walls = positionIndexes(positions, days.length * times.length).map((index) => {
      const day = days[Math.floor(index / times.length)] ?? 0;
      const time = times[index % times.length] ?? 0;
      return (day * SECONDS_PER_DAY + time) * SECOND;
    });
    this.#period = period;
    this.#walls = walls;
    return walls;
  }

  #daysOf(period: number): number[] {
    const days: number[] = [];
    const { unit, weekStart, calendar } = this.#shape;
    if (unit === 'WEEKLY') {
      const first = period * 7 + weekStart - 4;
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
      const year = Math.floor(index / 12);
      const first = dayOf(year, (index % 12) + 1, 1);
      for (let bits = calendar.mask(year, (index % 12) + 1); bits !== 0; bits &= bits - 1) {
        days.push(first + lowestBit(bits));
      }
    }
    return days;
  }
}
