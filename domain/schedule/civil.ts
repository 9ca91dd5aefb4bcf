/**
 * The proleptic Gregorian calendar in plain numbers. A "wall" is a wall-clock time without a zone,
 * as the milliseconds that `Date.UTC` gives for it. A "day" counts from 1970-01-01.
 */

export const SECOND = 1000;
export const HOUR = 3_600_000;
export const DAY = 86_400_000;
export const SECONDS_PER_DAY = 86_400;

/** Schedules cover the years 1 to 9999, the range of ISO 8601's four-digit years. */
export const FIRST_DAY = -719_162;
export const LAST_DAY = 2_932_896;
export const MAX_YEAR = 9999;

/** No fire is later than this in any zone, because later UTC timestamps could not be compared as strings. */
export const LAST_INSTANT = (LAST_DAY + 1) * DAY - 1;

/** A calendar date; `month` 1–12, `day` 1–31. */
export interface CivilDate {
  readonly year: number;
  readonly month: number;
  readonly day: number;
}

const monthLengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Whether a year has a 29 February. */
export function isLeapYear(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** The number of days of a month (1–12). */
export function monthLength(year: number, month: number): number {
  return month === 2 && isLeapYear(year) ? 29 : (monthLengths[month - 1] ?? 0);
}

/** The number of days of a year. */
export function yearLength(year: number): number {
  return isLeapYear(year) ? 366 : 365;
}

/** The day number of a date (Howard Hinnant's `days_from_civil`). */
export function dayOf(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year;
  const era = Math.floor(y / 400);
  const yearOfEra = y - era * 400;
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1;
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear;
  return era * 146_097 + dayOfEra - 719_468;
}

/** The date of a day number (Howard Hinnant's `civil_from_days`). */
export function civilOf(day: number): CivilDate {
  const shifted = day + 719_468;
  const era = Math.floor(shifted / 146_097);
  const dayOfEra = shifted - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear =
    dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const shiftedMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * shiftedMonth + 2) / 5) + 1,
  };
}

/** The day of the week, 0 is Sunday. */
export function weekdayOf(day: number): number {
  return (((day + 4) % 7) + 7) % 7;
}

/** `a` modulo `n`, never negative. */
export function modulo(a: number, n: number): number {
  return ((a % n) + n) % n;
}

/** The greatest common divisor of two positive integers. */
export function gcd(a: number, b: number): number {
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

/** The distinct values, ascending. */
export function sortedUnique(values: Iterable<number>): number[] {
  return [...new Set(values)].sort((a, b) => a - b);
}

/** The number of set bits of a 32-bit mask. */
export function bitCount(mask: number): number {
  let v = mask - ((mask >>> 1) & 0x5555_5555);
  v = (v & 0x3333_3333) + ((v >>> 2) & 0x3333_3333);
  return (((v + (v >>> 4)) & 0x0f0f_0f0f) * 0x0101_0101) >>> 24;
}

/** The index of the lowest set bit of a nonzero mask. */
export function lowestBit(mask: number): number {
  return 31 - Math.clz32(mask & -mask);
}

/** The index of the highest set bit of a nonzero mask. */
export function highestBit(mask: number): number {
  return 31 - Math.clz32(mask);
}

/** A wall time as `YYYY-MM-DDTHH:MM:SS`, with milliseconds unless they are 0. */
export function formatWall(wall: number): string {
  const text = new Date(wall).toISOString().slice(0, -1);
  return text.endsWith('.000') ? text.slice(0, -4) : text;
}
