import {
  bitCount,
  civilOf,
  DAY,
  dayOf,
  FIRST_DAY,
  highestBit,
  LAST_DAY,
  lowestBit,
  MAX_YEAR,
  SECOND,
  SECONDS_PER_DAY,
} from './civil.ts';
import type { TimesOfDay } from './times-of-day.ts';
import type { DayCalendar, WallRule } from './wall-rule.ts';
import { spend } from './work-limit.ts';

const LAST_MONTH = MAX_YEAR * 12 + 11;
const FIRST_MONTH = 12;

/** Cost of checking a month and a day, in work steps. */
const MONTH_COST = 10;
const DAY_COST = 3;
/** The Gregorian calendar repeats every 400 years. */
const MONTHS_PER_CYCLE = 4800;
const DAYS_PER_CYCLE = 146_097;

/** A search over this many months or more is cached. */
const MIN_CACHED_MONTHS = 24;

/** A span without fires, in seconds, both ends included. */
interface Gap {
  readonly from: number;
  readonly to: number;
  /** The fire that the search found beyond the gap; null if there is none. */
  readonly beyond: number | null;
}

/**
 * Combines the days of a calendar with times of day. This covers every cron rule and every rrule
 * without BYSETPOS. It searches month by month: the 8,000 years to the end of the calendar take 1–3
 * ms. Long searches are cached.
 */
export class CalendarRule implements WallRule {
  readonly #days: DayCalendar;
  readonly #times: TimesOfDay;
  readonly #start: number;
  /** The days of the last requested month, cached because most queries are sequential. */
  #month = -1;
  #mask = 0;
  /** The gaps found by the last long search in each direction. */
  #ahead: Gap | null = null;
  #behind: Gap | null = null;
  #perPeriod: number | null = null;

  /** @param start the first wall time at which the rule may fire */
  constructor(days: DayCalendar, times: TimesOfDay, start: number = FIRST_DAY * DAY) {
    this.#days = days;
    this.#times = times;
    this.#start = Math.max(Math.ceil(start / SECOND), FIRST_DAY * SECONDS_PER_DAY);
  }

  next(wall: number): number | null {
    const from = Math.max(Math.ceil(wall / SECOND), this.#start);
    const found = this.#next(from);
    return found === null ? null : found * SECOND;
  }

  previous(wall: number): number | null {
    const from = Math.min(Math.floor(wall / SECOND), (LAST_DAY + 1) * SECONDS_PER_DAY - 1);
    const found = from < this.#start ? null : this.#previous(from);
    return found === null || found < this.#start ? null : found * SECOND;
  }

  count(from: number, to: number): number {
    const low = Math.max(Math.ceil(from / SECOND), this.#start);
    const high = Math.min(Math.ceil(to / SECOND), (LAST_DAY + 1) * SECONDS_PER_DAY);
    if (high <= low) return 0;
    const { period } = this.#days;
    const seconds = (period / MONTHS_PER_CYCLE) * DAYS_PER_CYCLE * SECONDS_PER_DAY;
    if (this.#times.perDay === null || high - low < 2 * seconds) return this.#countBelow(low, high);
    // All whole periods have the same number of fires, regardless of their beginning.
    const whole = Math.floor((high - low) / seconds);
    this.#perPeriod ??= this.#countBelow(low, low + seconds);
    return whole * this.#perPeriod + this.#countBelow(low + whole * seconds, high);
  }

  #next(from: number): number | null {
    if (this.#times.perDay === 0) return null;
    let day = Math.floor(from / SECONDS_PER_DAY);
    if (day > LAST_DAY) return null;
    let second = from - day * SECONDS_PER_DAY;
    const date = civilOf(day);
    const startIndex = date.year * 12 + date.month - 1;
    let index = startIndex;
    // A rule without a fire in one period never fires.
    const last = Math.min(LAST_MONTH, index + this.#days.period);
    let first = day - date.day + 1;
    let bits = this.#maskOf(index) & (-1 << (date.day - 1));
    const end = (beyond: number | null, to: number): number | null => {
      if (index - startIndex >= MIN_CACHED_MONTHS) this.#ahead = { from, to, beyond };
      return beyond;
    };
    for (;;) {
      const known = this.#ahead;
      const reached = Math.max(from, first * SECONDS_PER_DAY);
      if (known !== null && reached >= known.from && reached <= known.to) {
        return end(known.beyond, known.to);
      }
      while (bits !== 0) {
        const bit = lowestBit(bits);
        if (first + bit > day) {
          day = first + bit;
          second = 0;
        }
        spend(DAY_COST);
        const time = this.#times.next(day, second);
        if (time >= 0) return end(day * SECONDS_PER_DAY + time, day * SECONDS_PER_DAY + time - 1);
        bits &= bits - 1;
      }
      index = this.#days.nextMonth(index + 1);
      if (index > last) return end(null, Infinity);
      first = firstDay(index);
      bits = this.#maskOf(index);
      day = first - 1;
    }
  }

  #previous(from: number): number | null {
    if (this.#times.perDay === 0) return null;
    let day = Math.floor(from / SECONDS_PER_DAY);
    const date = civilOf(day);
    const startIndex = date.year * 12 + date.month - 1;
    let index = startIndex;
    let second = from - day * SECONDS_PER_DAY;
    const earliest = Math.max(FIRST_MONTH, index - this.#days.period);
    let bits = this.#maskOf(index) & (date.day === 31 ? -1 : (1 << date.day) - 1);
    let first = day - date.day + 1;
    const end = (beyond: number | null, to: number): number | null => {
      if (startIndex - index >= MIN_CACHED_MONTHS) this.#behind = { from: to, to: from, beyond };
      return beyond;
    };
    for (;;) {
      const known = this.#behind;
      const reached = Math.min(from, (first + 31) * SECONDS_PER_DAY - 1);
      if (known !== null && reached >= known.from && reached <= known.to) {
        return end(known.beyond, known.from);
      }
      while (bits !== 0) {
        const bit = highestBit(bits);
        if (first + bit < day) {
          day = first + bit;
          second = SECONDS_PER_DAY - 1;
        }
        spend(DAY_COST);
        const time = this.#times.previous(day, second);
        if (time >= 0) return end(day * SECONDS_PER_DAY + time, day * SECONDS_PER_DAY + time + 1);
        bits &= ~(1 << bit);
        second = SECONDS_PER_DAY - 1;
      }
      index = this.#days.previousMonth(index - 1);
      if (index < earliest) return end(null, -Infinity);
      first = firstDay(index);
      if ((first + 31) * SECONDS_PER_DAY < this.#start) return end(null, -Infinity);
      bits = this.#maskOf(index);
      day = first + 31;
    }
  }

  /** Number of wall times in [low, high), both in seconds. */
  #countBelow(low: number, high: number): number {
    const lastDay = Math.floor(high / SECONDS_PER_DAY);
    const firstDayOfSpan = Math.floor(low / SECONDS_PER_DAY);
    let total = 0;
    const start = civilOf(firstDayOfSpan);
    let counted = start.year;
    let index = this.#days.nextMonth(start.year * 12 + start.month - 1);
    for (; index <= LAST_MONTH; index = this.#days.nextMonth(index + 1)) {
      const first = firstDay(index);
      if (first > lastDay) break;
      if (this.#times.perDay !== null && first >= firstDayOfSpan) {
        const year = Math.floor(index / 12);
        const days = dayOf(year + 1, 1, 1) <= lastDay ? this.#days.daysOfYear(year) : null;
        // Skips a whole year only if none of its months was already counted.
        if (days !== null && (index % 12 === 0 || year > counted)) {
          spend(MONTH_COST);
          total += days * this.#times.perDay;
          counted = year;
          index = year * 12 + 11;
          continue;
        }
      }
      counted = Math.floor(index / 12);
      let bits = this.#maskOf(index);
      if (first < firstDayOfSpan) bits &= -1 << (firstDayOfSpan - first);
      if (lastDay - first < 31) bits &= (1 << (lastDay - first)) - 1;
      if (bits !== 0) total += this.#countDays(first, bits);
    }
    // `total` covers whole days from the first up to the last. Subtract the times before `low`, and
    // add those before `high`.
    const onFirst = low - firstDayOfSpan * SECONDS_PER_DAY;
    if (firstDayOfSpan < lastDay) {
      if (this.#has(firstDayOfSpan)) total -= this.#times.countBelow(firstDayOfSpan, onFirst);
      if (this.#has(lastDay))
        total += this.#times.countBelow(lastDay, high - lastDay * SECONDS_PER_DAY);
    } else if (this.#has(lastDay)) {
      total += this.#times.countBelow(lastDay, high - lastDay * SECONDS_PER_DAY);
      total -= this.#times.countBelow(lastDay, onFirst);
    }
    return total;
  }

  #countDays(first: number, mask: number): number {
    const { perDay } = this.#times;
    if (perDay !== null) return bitCount(mask) * perDay;
    let total = 0;
    for (let bits = mask; bits !== 0; bits &= bits - 1) {
      spend(DAY_COST);
      total += this.#times.countBelow(first + lowestBit(bits), SECONDS_PER_DAY);
    }
    return total;
  }

  #has(day: number): boolean {
    if (day > LAST_DAY) return false;
    const date = civilOf(day);
    return (this.#maskOf(date.year * 12 + date.month - 1) & (1 << (date.day - 1))) !== 0;
  }

  #maskOf(index: number): number {
    if (index !== this.#month) {
      this.#month = index;
      spend(MONTH_COST);
      const year = Math.floor(index / 12);
      this.#mask =
        this.#days.nextMonth(index) === index ? this.#days.mask(year, (index % 12) + 1) : 0;
    }
    return this.#mask;
  }
}

function firstDay(index: number): number {
  return dayOf(Math.floor(index / 12), (index % 12) + 1, 1);
}
