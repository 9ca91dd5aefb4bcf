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

const LAST_MONTH = MAX_YEAR * 12 + 11;
const FIRST_MONTH = 12;

/**
 * Days of a calendar × times of day: every cron rule, and every rrule without BYSETPOS. It goes by
 * whole months, so a search over the 8,000 years to the end of the calendar takes 1–3 ms, and one
 * that found nothing is not repeated.
 */
export class CalendarRule implements WallRule {
  readonly #days: DayCalendar;
  readonly #times: TimesOfDay;
  readonly #start: number;
  /** The days of the month asked last: fires are mostly asked one after the other. */
  #month = -1;
  #mask = 0;
  /** From this second on there is known to be nothing. */
  #barren = Infinity;

  /** `start` is the first wall at which the rule may fire. */
  constructor(days: DayCalendar, times: TimesOfDay, start: number = FIRST_DAY * DAY) {
    this.#days = days;
    this.#times = times;
    this.#start = Math.max(Math.ceil(start / SECOND), FIRST_DAY * SECONDS_PER_DAY);
  }

  next(wall: number): number | null {
    const from = Math.max(Math.ceil(wall / SECOND), this.#start);
    if (from >= this.#barren) return null;
    const found = this.#next(from);
    if (found === null) this.#barren = from;
    return found;
  }

  previous(wall: number): number | null {
    const from = Math.min(Math.floor(wall / SECOND), (LAST_DAY + 1) * SECONDS_PER_DAY - 1);
    if (from < this.#start) return null;
    let day = Math.floor(from / SECONDS_PER_DAY);
    const date = civilOf(day);
    let index = date.year * 12 + date.month - 1;
    let second = from - day * SECONDS_PER_DAY;
    const earliest = Math.max(FIRST_MONTH, index - this.#days.period);
    // Days up to and including this one.
    let bits = this.#maskOf(index) & (date.day === 31 ? -1 : (1 << date.day) - 1);
    let first = day - date.day + 1;
    for (;;) {
      while (bits !== 0) {
        const bit = highestBit(bits);
        if (first + bit < day) {
          day = first + bit;
          second = SECONDS_PER_DAY - 1;
        }
        const time = this.#times.previous(day, second);
        if (time >= 0) {
          const found = day * SECONDS_PER_DAY + time;
          return found < this.#start ? null : found * SECOND;
        }
        bits &= ~(1 << bit);
        second = SECONDS_PER_DAY - 1;
      }
      index = this.#days.previousMonth(index - 1);
      if (index < earliest) return null;
      first = firstDay(index);
      if ((first + 31) * SECONDS_PER_DAY < this.#start) return null;
      bits = this.#maskOf(index);
      day = first + 31;
    }
  }

  count(from: number, to: number): number {
    const low = Math.max(Math.ceil(from / SECOND), this.#start);
    const high = Math.min(Math.ceil(to / SECOND), (LAST_DAY + 1) * SECONDS_PER_DAY);
    if (high <= low) return 0;
    return this.#countBelow(low, high);
  }

  #next(from: number): number | null {
    let day = Math.floor(from / SECONDS_PER_DAY);
    if (day > LAST_DAY) return null;
    let second = from - day * SECONDS_PER_DAY;
    const date = civilOf(day);
    let index = date.year * 12 + date.month - 1;
    // What does not come within one period never comes.
    const last = Math.min(LAST_MONTH, index + this.#days.period);
    let first = day - date.day + 1;
    let bits = this.#maskOf(index) & (-1 << (date.day - 1));
    for (;;) {
      while (bits !== 0) {
        const bit = lowestBit(bits);
        if (first + bit > day) {
          day = first + bit;
          second = 0;
        }
        const time = this.#times.next(day, second);
        if (time >= 0) return (day * SECONDS_PER_DAY + time) * SECOND;
        bits &= bits - 1;
      }
      index = this.#days.nextMonth(index + 1);
      if (index > last) return null;
      first = firstDay(index);
      bits = this.#maskOf(index);
      day = first - 1;
    }
  }

  /** Walls in [low, high), both in seconds. */
  #countBelow(low: number, high: number): number {
    const lastDay = Math.floor(high / SECONDS_PER_DAY);
    const firstDayAsked = Math.floor(low / SECONDS_PER_DAY);
    let total = 0;
    const start = civilOf(firstDayAsked);
    let index = this.#days.nextMonth(start.year * 12 + start.month - 1);
    for (; index <= LAST_MONTH; index = this.#days.nextMonth(index + 1)) {
      const first = firstDay(index);
      if (first > lastDay) break;
      let bits = this.#maskOf(index);
      if (first < firstDayAsked) bits &= -1 << (firstDayAsked - first);
      if (lastDay - first < 31) bits &= (1 << (lastDay - first)) - 1;
      total += this.#countDays(first, bits);
    }
    // So far every whole day from the first to before the last: cut the first, add the last's part.
    const onFirst = low - firstDayAsked * SECONDS_PER_DAY;
    if (firstDayAsked < lastDay) {
      if (this.#has(firstDayAsked)) total -= this.#times.countBelow(firstDayAsked, onFirst);
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
