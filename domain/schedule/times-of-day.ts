import { SECONDS_PER_DAY, sortedUnique } from './civil.ts';

/**
 * The times of day at which a rule fires, in whole seconds since midnight. Days count from
 * 1970-01-01; most rules have the same times every day and ignore the day.
 */
export interface TimesOfDay {
  /** The first time ≥ `second` on a day, or −1. */
  next(day: number, second: number): number;
  /** The last time ≤ `second` on a day, or −1. */
  previous(day: number, second: number): number;
  /** The number of times < `second` on a day; 86,400 counts all of them. */
  countBelow(day: number, second: number): number;
  /** The number of times of every day; null if it differs between days. */
  readonly perDay: number | null;
}

const HOURS = 24;
const SIXTY = 60;

/** Lookup tables of values below `size`: next member ≥, last member ≤ (−1 if none), rank. */
class Members {
  readonly count: number;
  readonly first: number;
  readonly last: number;
  readonly #next: Int8Array;
  readonly #previous: Int8Array;
  readonly #below: Int8Array;

  constructor(values: Iterable<number>, size: number) {
    const present = new Array<boolean>(size).fill(false);
    for (const value of values) present[value] = true;
    this.#next = new Int8Array(size + 1).fill(-1);
    this.#previous = new Int8Array(size + 1).fill(-1);
    this.#below = new Int8Array(size + 1);
    for (let i = size - 1; i >= 0; i--) this.#next[i] = present[i] ? i : (this.#next[i + 1] ?? -1);
    for (let i = 0; i <= size; i++) {
      this.#previous[i] = present[i] ? i : i === 0 ? -1 : (this.#previous[i - 1] ?? -1);
      this.#below[i] = i === 0 ? 0 : (this.#below[i - 1] ?? 0) + (present[i - 1] ? 1 : 0);
    }
    this.count = this.#below[size] ?? 0;
    this.first = this.#next[0] ?? -1;
    this.last = this.#previous[size] ?? -1;
  }

  next(value: number): number {
    return this.#next[value] ?? -1;
  }

  previous(value: number): number {
    return this.#previous[value] ?? -1;
  }

  below(value: number): number {
    return this.#below[value] ?? 0;
  }
}

/** Every combination of some hours, minutes and seconds. Queries take constant time. */
export class ClockTimes implements TimesOfDay {
  readonly perDay: number;
  readonly #hours: Members;
  readonly #minutes: Members;
  readonly #seconds: Members;

  constructor(hours: Iterable<number>, minutes: Iterable<number>, seconds: Iterable<number>) {
    this.#hours = new Members(hours, HOURS);
    this.#minutes = new Members(minutes, SIXTY);
    this.#seconds = new Members(seconds, SIXTY);
    this.perDay = this.#hours.count * this.#minutes.count * this.#seconds.count;
  }

  next(_day: number, second: number): number {
    if (this.perDay === 0 || second >= SECONDS_PER_DAY) return -1;
    const [h, m, s] = split(second);
    let hour = this.#hours.next(h);
    if (hour === h) {
      let minute = this.#minutes.next(m);
      if (minute === m) {
        const found = this.#seconds.next(s);
        if (found >= 0) return h * 3600 + m * 60 + found;
        minute = this.#minutes.next(m + 1);
      }
      if (minute >= 0) return h * 3600 + minute * 60 + this.#seconds.first;
      hour = this.#hours.next(h + 1);
    }
    return hour < 0 ? -1 : hour * 3600 + this.#minutes.first * 60 + this.#seconds.first;
  }

  previous(_day: number, second: number): number {
    if (this.perDay === 0 || second < 0) return -1;
    const [h, m, s] = split(Math.min(second, SECONDS_PER_DAY - 1));
    let hour = this.#hours.previous(h);
    if (hour === h) {
      let minute = this.#minutes.previous(m);
      if (minute === m) {
        const found = this.#seconds.previous(s);
        if (found >= 0) return h * 3600 + m * 60 + found;
        minute = m === 0 ? -1 : this.#minutes.previous(m - 1);
      }
      if (minute >= 0) return h * 3600 + minute * 60 + this.#seconds.last;
      hour = h === 0 ? -1 : this.#hours.previous(h - 1);
    }
    return hour < 0 ? -1 : hour * 3600 + this.#minutes.last * 60 + this.#seconds.last;
  }

  countBelow(_day: number, second: number): number {
    if (second <= 0) return 0;
    if (second >= SECONDS_PER_DAY) return this.perDay;
    const [h, m, s] = split(second);
    const perHour = this.#minutes.count * this.#seconds.count;
    let count = this.#hours.below(h) * perHour;
    if (this.#hours.next(h) !== h) return count;
    count += this.#minutes.below(m) * this.#seconds.count;
    return this.#minutes.next(m) === m ? count + this.#seconds.below(s) : count;
  }
}

/** A short list of times, the same on every day. */
export class ListedTimes implements TimesOfDay {
  readonly perDay: number;
  readonly #times: readonly number[];

  /** @param times seconds since midnight, in any order */
  constructor(times: Iterable<number>) {
    this.#times = sortedUnique(times);
    this.perDay = this.#times.length;
  }

  next(_day: number, second: number): number {
    return this.#times[this.countBelow(0, second)] ?? -1;
  }

  previous(_day: number, second: number): number {
    return this.#times[this.countBelow(0, second + 1) - 1] ?? -1;
  }

  countBelow(_day: number, second: number): number {
    let low = 0;
    let high = this.#times.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#times[middle] ?? 0) < second) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The same times within each slot of a day, such as every third hour. */
export class SlotTimes implements TimesOfDay {
  readonly perDay: number;
  readonly #slots: ListedTimes;
  readonly #offsets: ListedTimes;

  /**
   * @param slots seconds since midnight at which the slots begin; slots do not overlap
   * @param offsets seconds within a slot
   */
  constructor(slots: Iterable<number>, offsets: Iterable<number>) {
    this.#slots = new ListedTimes(slots);
    this.#offsets = new ListedTimes(offsets);
    this.perDay = this.#slots.perDay * this.#offsets.perDay;
  }

  next(_day: number, second: number): number {
    if (this.perDay === 0) return -1;
    const slot = this.#slots.previous(0, second);
    if (slot >= 0) {
      const offset = this.#offsets.next(0, second - slot);
      if (offset >= 0) return slot + offset;
    }
    const following = this.#slots.next(0, second + 1);
    return following < 0 ? -1 : following + this.#offsets.next(0, 0);
  }

  previous(_day: number, second: number): number {
    if (this.perDay === 0) return -1;
    const slot = this.#slots.previous(0, second);
    if (slot < 0) return -1;
    const offset = this.#offsets.previous(0, second - slot);
    if (offset >= 0) return slot + offset;
    const before = this.#slots.previous(0, slot - 1);
    return before < 0 ? -1 : before + this.#offsets.previous(0, SECONDS_PER_DAY);
  }

  countBelow(_day: number, second: number): number {
    const startedSlots = this.#slots.countBelow(0, second);
    if (startedSlots === 0) return 0;
    const last = this.#slots.previous(0, second - 1);
    return (startedSlots - 1) * this.#offsets.perDay + this.#offsets.countBelow(0, second - last);
  }
}

function split(second: number): [number, number, number] {
  const hour = Math.floor(second / 3600);
  const rest = second - hour * 3600;
  const minute = Math.floor(rest / 60);
  return [hour, minute, rest - minute * 60];
}
