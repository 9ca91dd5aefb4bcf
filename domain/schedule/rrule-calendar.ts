import {
  bitCount,
  civilOf,
  dayOf,
  gcd,
  isLeapYear,
  lowestBit,
  MAX_YEAR,
  modulo,
  monthLength,
  weekdayOf,
  yearLength,
} from './civil.ts';
import { allDays, MonthTable, nthWeekdayDay, weekdayDays } from './month-table.ts';
import type { RruleParts } from './rrule-parts.ts';
import type { DayCalendar } from './wall-rule.ts';
import { spend } from './work.ts';

/** The whole periods a rule keeps step by: every n-th year, month, week or day from its start. */
export interface DayPhase {
  readonly unit: 'YEARLY' | 'MONTHLY' | 'WEEKLY' | 'DAILY';
  readonly interval: number;
  /** The day the rule starts on. */
  readonly start: number;
}

/** Steps of work for what the table of months does not say of one, and for a kind of year. */
const MONTH = 15;
const YEAR = 5000;

const periodsOf400Years = { YEARLY: 400, MONTHLY: 4800, WEEKLY: 20_871, DAILY: 146_097 } as const;

/**
 * The days that an RRULE's day parts leave, in the periods its INTERVAL meets. RFC 5545's table of
 * expanding and limiting parts comes to the same as this: a day is taken when every part that is
 * given takes it, once the parts that are left out have been filled in from the start.
 */
export class RruleCalendar implements DayCalendar {
  readonly period: number;
  readonly #parts: RruleParts;
  readonly #phase: DayPhase;
  readonly #months: readonly boolean[];
  readonly #table: MonthTable;
  /** `20MO` counts within the year when no month is named. */
  readonly #countInYear: boolean;
  /** Whether the table of months says all. */
  readonly #plain: boolean;
  readonly #startYear: number;
  readonly #startMonth: number;
  readonly #startWeek: number;
  /** Days from one week or day that the interval meets to the next; 0 where it is by years or months. */
  readonly #phaseDays: number;
  /** The months of a year as far as it is counted within the year, by kind of year; null where it is not. */
  readonly #years: Map<number, readonly number[]> | null;

  constructor(parts: RruleParts, phase: DayPhase) {
    const start = civilOf(phase.start);
    this.#parts = parts;
    this.#phase = phase;
    // The calendar repeats after 400 years, a rule when its interval does so too.
    const { interval, unit } = phase;
    this.period = (4800 * interval) / gcd(interval, periodsOf400Years[unit]);
    this.#startYear = start.year;
    this.#startMonth = start.year * 12 + start.month - 1;
    this.#startWeek = weekOf(phase.start, parts.weekStart);
    this.#months = Array.from({ length: 12 }, (_, m) => parts.months?.includes(m + 1) ?? true);
    this.#countInYear =
      parts.freq === 'YEARLY' &&
      parts.months === null &&
      (parts.weekdays?.some((day) => day.nth !== 0) ?? false);
    this.#plain =
      !this.#countInYear &&
      parts.yearDays === null &&
      parts.weekNumbers === null &&
      (phase.interval === 1 || phase.unit === 'YEARLY' || phase.unit === 'MONTHLY');
    this.#table = new MonthTable((length, first) => this.#pattern(length, first));
    this.#phaseDays = unit === 'DAILY' ? interval : unit === 'WEEKLY' ? interval * 7 : 0;
    const isYearly = this.#countInYear || parts.yearDays !== null || parts.weekNumbers !== null;
    this.#years = isYearly ? new Map() : null;
  }

  mask(year: number, month: number): number {
    let mask = this.#table.mask(year, month);
    if (this.#plain || mask === 0) return mask;
    spend(MONTH);
    const first = dayOf(year, month, 1);
    if (this.#phase.interval > 1) mask &= this.#inPhase(first);
    if (mask !== 0 && this.#years !== null) mask &= this.#yearOf(year, this.#years)[month - 1] ?? 0;
    return mask & allDays(monthLength(year, month));
  }

  /** What the parts that count within the year leave of its months. */
  #yearOf(year: number, kept: Map<number, readonly number[]>): readonly number[] {
    // It depends on the weekday it begins with, and on the lengths of the year, of that before and of that after.
    const leaps = [year - 1, year, year + 1].reduce(
      (bits, y) => bits * 2 + Number(isLeapYear(y)),
      0,
    );
    const kind = weekdayOf(dayOf(year, 1, 1)) * 8 + leaps;
    let masks = kept.get(kind);
    if (masks === undefined) {
      spend(YEAR);
      masks = Array.from({ length: 12 }, (_, month) => this.#inYear(year, month + 1));
      kept.set(kind, masks);
    }
    return masks;
  }

  #inYear(year: number, month: number): number {
    const first = dayOf(year, month, 1);
    const { yearDays, weekNumbers } = this.#parts;
    let mask = allDays(monthLength(year, month));
    if (this.#countInYear) mask &= this.#yearWeekdays(year, first);
    if (yearDays !== null) mask &= this.#daysOfYear(year, first, yearDays);
    if (weekNumbers !== null) mask &= this.#weeks(mask, first, new Set(weekNumbers));
    return mask;
  }

  /** The most days that any month can have. */
  get maxDays(): number {
    let most = 0;
    for (let length = 28; length <= 31; length++) {
      for (let first = 0; first < 7; first++) {
        most = Math.max(most, bitCount(this.#pattern(length, first)));
      }
    }
    return most;
  }

  nextMonth(month: number): number {
    return this.#seek(month, 1);
  }

  previousMonth(month: number): number {
    return this.#seek(month, -1);
  }

  /** The nearest month in one direction that is in phase and named. */
  #seek(month: number, direction: 1 | -1): number {
    const { unit, interval } = this.#phase;
    let found = month;
    while (found >= 0 && found < (MAX_YEAR + 1) * 12) {
      if (unit === 'YEARLY' && interval > 1) {
        const year = Math.floor(found / 12);
        const off = modulo(direction * (this.#startYear - year), interval);
        if (off > 0) found = (year + direction * off) * 12 + (direction > 0 ? 0 : 11);
      } else if (unit === 'MONTHLY' && interval > 1) {
        found += direction * modulo(direction * (this.#startMonth - found), interval);
      } else if (this.#phaseDays >= 62) {
        found = this.#seekDay(found, direction);
      }
      if (found < 0 || this.#months[found % 12] === true) return found;
      found += direction;
    }
    return found;
  }

  /** The nearest month in one direction with a day of a week or day that a long interval meets. */
  #seekDay(month: number, direction: 1 | -1): number {
    const { unit, start } = this.#phase;
    const year = Math.floor(month / 12);
    const first = dayOf(year, (month % 12) + 1, 1);
    const days = this.#phaseDays;
    const begin = unit === 'DAILY' ? start : this.#startWeek * 7 + this.#parts.weekStart - 4;
    // A week that began in the month before counts by its last day too.
    const rest = unit === 'DAILY' ? 0 : 6;
    const last = first + monthLength(year, (month % 12) + 1) - 1;
    const before = last - modulo(last - begin, days);
    if (before + rest >= first) return month;
    const { year: y, month: m } = civilOf(direction > 0 ? before + days : before + rest);
    return y * 12 + m - 1;
  }

  #pattern(length: number, first: number): number {
    const { monthDays, weekdays } = this.#parts;
    let mask = allDays(length);
    if (monthDays !== null) {
      let days = 0;
      for (const day of monthDays) {
        const index = day > 0 ? day - 1 : length + day;
        if (index >= 0 && index < length) days |= 1 << index;
      }
      mask &= days;
    }
    if (weekdays !== null && !this.#countInYear) {
      let days = 0;
      for (const day of weekdays) {
        days |=
          day.nth === 0
            ? weekdayDays(length, first, 1 << day.weekday)
            : nthWeekdayDay(length, first, day);
      }
      mask &= days;
    }
    return mask;
  }

  /** Bits of a month's days whose week or day the interval meets. */
  #inPhase(first: number): number {
    const { unit, interval, start } = this.#phase;
    let mask = 0;
    if (unit === 'DAILY') {
      for (let day = modulo(start - first, interval); day < 31; day += interval) mask |= 1 << day;
    } else if (unit === 'WEEKLY') {
      const { weekStart } = this.#parts;
      let week = weekOf(first, weekStart);
      week += modulo(this.#startWeek - week, interval);
      for (let day = week * 7 + weekStart - 4 - first; day < 31; day += 7 * interval) {
        mask |= day < 0 ? 0x7f >>> -day : 0x7f << day;
      }
    } else {
      mask = -1;
    }
    return mask;
  }

  /** Bits of a month's days that are, say, the 20th Monday of the year. */
  #yearWeekdays(year: number, first: number): number {
    const newYear = dayOf(year, 1, 1);
    const length = yearLength(year);
    let mask = 0;
    for (const { weekday, nth } of this.#parts.weekdays ?? []) {
      if (nth === 0) {
        mask |= weekdayDays(31, weekdayOf(first), 1 << weekday);
        continue;
      }
      const firstOfYear = modulo(weekday - weekdayOf(newYear), 7);
      const count = Math.floor((length - firstOfYear + 6) / 7);
      const index = nth > 0 ? nth - 1 : count + nth;
      const day = newYear + firstOfYear + index * 7 - first;
      if (index >= 0 && index < count && day >= 0 && day < 31) mask |= 1 << day;
    }
    return mask;
  }

  #daysOfYear(year: number, first: number, wanted: readonly number[]): number {
    const newYear = dayOf(year, 1, 1);
    const length = yearLength(year);
    let mask = 0;
    for (const number of wanted) {
      const index = number > 0 ? number - 1 : length + number;
      const day = newYear + index - first;
      if (index >= 0 && index < length && day >= 0 && day < 31) mask |= 1 << day;
    }
    return mask;
  }

  /** Those of some days of a month that lie in wanted weeks. */
  #weeks(days: number, first: number, wanted: ReadonlySet<number>): number {
    let mask = 0;
    for (let bits = days; bits !== 0; bits &= bits - 1) {
      const day = lowestBit(bits);
      const { number, total } = weekNumber(first + day, this.#parts.weekStart);
      if (wanted.has(number) || wanted.has(number - total - 1)) mask |= 1 << day;
    }
    return mask;
  }
}

/** The number of a day's week, counted from an arbitrary one; `weekStart` 0 is Sunday. */
export function weekOf(day: number, weekStart: number): number {
  return Math.floor((day + 4 - weekStart) / 7);
}

/** A day's week within its year (ISO 8601's rule for any first weekday), and the weeks of that year. */
function weekNumber(day: number, weekStart: number): { number: number; total: number } {
  // The middle of a week says which year it belongs to.
  const middle = day - modulo(weekdayOf(day) - weekStart, 7) + 3;
  const { year } = civilOf(middle);
  const newYear = dayOf(year, 1, 1);
  const firstMiddle = modulo(weekStart + 3 - weekdayOf(newYear), 7);
  return {
    number: Math.floor((middle - newYear) / 7) + 1,
    total: Math.floor((yearLength(year) - firstMiddle + 6) / 7),
  };
}
