import { dayOf, monthLength, weekdayOf } from './civil.ts';

/** The n-th (1 to 5) weekday, or the n-th from the end (−1 to −5); weekday 0 is Sunday. */
export interface NthWeekday {
  readonly weekday: number;
  readonly nth: number;
}

/** Returns a month's matching days as bits, given its length and the weekday of its first day. */
export type MonthPattern = (length: number, firstWeekday: number) => number;

/** Caches matching days for the 28 kinds of month, by length and first weekday. */
export class MonthTable {
  readonly #pattern: MonthPattern;
  readonly #masks = new Int32Array(28).fill(-1);

  constructor(pattern: MonthPattern) {
    this.#pattern = pattern;
  }

  /** The matching days of a month (1–12); bit 0 is the first day. */
  mask(year: number, month: number): number {
    const length = monthLength(year, month);
    const firstWeekday = weekdayOf(dayOf(year, month, 1));
    const key = (length - 28) * 7 + firstWeekday;
    if (this.#masks[key] === -1) this.#masks[key] = this.#pattern(length, firstWeekday);
    return this.#masks[key] ?? 0;
  }
}

/** All days of a month, as bits. */
export function allDays(length: number): number {
  return length === 31 ? 0x7fff_ffff : (1 << length) - 1;
}

/** The days on the given weekdays, as bits; in `weekdays`, bit 0 is Sunday. */
export function weekdayDays(length: number, firstWeekday: number, weekdays: number): number {
  let mask = 0;
  for (let day = 0; day < length; day++) {
    if ((weekdays & (1 << ((firstWeekday + day) % 7))) !== 0) mask |= 1 << day;
  }
  return mask;
}

/** The n-th weekday of a month, as a bit; 0 if the month has none. */
export function nthWeekdayDay(length: number, firstWeekday: number, wanted: NthWeekday): number {
  const first = (wanted.weekday - firstWeekday + 7) % 7;
  const count = Math.floor((length - first + 6) / 7);
  const index = wanted.nth > 0 ? wanted.nth - 1 : count + wanted.nth;
  return index < 0 || index >= count ? 0 : 1 << (first + index * 7);
}
