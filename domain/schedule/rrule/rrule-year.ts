import {
  bitCount,
  civilOf,
  dayOf,
  isLeapYear,
  lowestBit,
  modulo,
  weekdayOf,
  yearLength,
  monthLength,
} from '../civil.ts';
import { allDays, nthWeekdayDay, weekdayDays } from '../month-table.ts';
import type { RruleParts } from './rrule-parts.ts';
import { spend } from '../work-limit.ts';

/** The matching days of a year. */
export interface YearDays {
  /** Each month's days as bits; bit 0 is the first. */
  readonly masks: readonly number[];
  /** The months with any matching days, as bits; bit 0 is January. */
  readonly months: number;
  /** The number of matching days. */
  readonly count: number;
}

/** Cost of computing a kind of year, in work steps. */
const KIND_COST = 3000;

/**
 * The days that match an RRULE's day parts, regardless of INTERVAL. A day matches if it matches
 * every given part, once omitted parts are filled in from the start. This is equivalent to RFC
 * 5545's table of expanding and limiting parts.
 *
 * The days depend only on the year's first weekday, its length and its neighbours' lengths (they
 * share weeks), so each kind of year is computed once.
 */
export class RruleYears {
  readonly #parts: RruleParts;
  readonly #weekday: number | null;
  /** `20MO` counts within the year if no month is given. */
  readonly #countInYear: boolean;
  readonly #weekNumbers: ReadonlySet<number> | null;
  readonly #kinds = new Map<number, YearDays>();
  #year = NaN;
  #days: YearDays = { masks: [], months: 0, count: 0 };

  /** @param weekday the only possible weekday; null for any */
  constructor(parts: RruleParts, weekday: number | null) {
    this.#parts = parts;
    this.#weekday = weekday;
    this.#countInYear =
      parts.freq === 'YEARLY' &&
      parts.months === null &&
      (parts.weekdays?.some((day) => day.nth !== 0) ?? false);
    this.#weekNumbers = parts.weekNumbers === null ? null : new Set(parts.weekNumbers);
  }

  of(year: number): YearDays {
    if (year === this.#year) return this.#days;
    const leaps =
      (isLeapYear(year - 1) ? 4 : 0) + (isLeapYear(year) ? 2 : 0) + (isLeapYear(year + 1) ? 1 : 0);
    const kind = weekdayOf(dayOf(year, 1, 1)) * 8 + leaps;
    let days = this.#kinds.get(kind);
    if (days === undefined) {
      spend(KIND_COST);
      const masks = Array.from({ length: 12 }, (_, month) => this.#mask(year, month + 1));
      const months = masks.reduce((bits, mask, month) => bits | (mask === 0 ? 0 : 1 << month), 0);
      const count = masks.reduce((sum, mask) => sum + bitCount(mask), 0);
      this.#kinds.set(kind, (days = { masks, months, count }));
    }
    this.#year = year;
    this.#days = days;
    return days;
  }

  /** An upper bound of the matching days of a month. */
  get maxDays(): number {
    let max = 0;
    for (let length = 28; length <= 31; length++) {
      for (let first = 0; first < 7; first++) {
        max = Math.max(max, bitCount(this.#pattern(length, first)));
      }
    }
    return max;
  }

  #mask(year: number, month: number): number {
    const { months, yearDays } = this.#parts;
    if (months !== null && !months.includes(month)) return 0;
    const first = dayOf(year, month, 1);
    let mask = this.#pattern(monthLength(year, month), weekdayOf(first));
    if (this.#countInYear) mask &= this.#yearWeekdays(year, first);
    if (yearDays !== null) mask &= yearDayBits(year, first, yearDays);
    if (this.#weekNumbers !== null) mask &= this.#weeks(mask, first, this.#weekNumbers);
    return mask;
  }

  /** The days by the parts that apply within a month. */
  #pattern(length: number, first: number): number {
    const { monthDays, weekdays } = this.#parts;
    let mask = allDays(length);
    if (this.#weekday !== null) mask &= weekdayDays(length, first, 1 << this.#weekday);
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

  /** The days of a month that are, say, the 20th Monday of the year, as bits. */
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

  /** Filters a month's days by the wanted week numbers. */
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

/** The days of a month with the given numbers in the year (−1 is the last), as bits. */
function yearDayBits(year: number, first: number, wanted: readonly number[]): number {
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

/** A day's week number (as ISO 8601, for any first weekday) and the weeks of its year. */
function weekNumber(day: number, weekStart: number): { number: number; total: number } {
  // A week belongs to the year of its middle day.
  const middle = day - modulo(weekdayOf(day) - weekStart, 7) + 3;
  const { year } = civilOf(middle);
  const newYear = dayOf(year, 1, 1);
  const firstMiddle = modulo(weekStart + 3 - weekdayOf(newYear), 7);
  return {
    number: Math.floor((middle - newYear) / 7) + 1,
    total: Math.floor((yearLength(year) - firstMiddle + 6) / 7),
  };
}

/** The years of one RRULE, shared by calendars that differ only in phase. */
export class SharedYears {
  readonly #parts: RruleParts;
  readonly #byWeekday = new Map<number | null, RruleYears>();

  constructor(parts: RruleParts) {
    this.#parts = parts;
  }

  /** @param weekday the only possible weekday; null for any */
  of(weekday: number | null): RruleYears {
    let years = this.#byWeekday.get(weekday);
    if (years === undefined) {
      years = new RruleYears(this.#parts, weekday);
      this.#byWeekday.set(weekday, years);
    }
    return years;
  }
}
