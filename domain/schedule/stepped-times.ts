import { modulo, SECONDS_PER_DAY } from './civil.ts';
import { ListedTimes, type TimesOfDay } from './times-of-day.ts';
import { spend } from './work-limit.ts';

/** A rule in hours or minutes whose interval does not divide a day, so every day differs. */
export interface SteppedShape {
  /** The start of a slot (hour or minute), in seconds since 1970-01-01T00:00 wall time. */
  readonly start: number;
  /** Seconds between two slots. */
  readonly step: number;
  /** Whether the rule accepts a slot that begins at this second of the day; null accepts all. */
  readonly accepts: ((second: number) => boolean) | null;
  /** The seconds within a slot at which the rule fires, ascending. */
  readonly offsets: readonly number[];
}

/** The times of day of a {@link SteppedShape}. */
export class SteppedTimes implements TimesOfDay {
  readonly perDay = null;
  readonly #shape: SteppedShape;
  readonly #offsets: ListedTimes;
  /** Number of fires of a whole day, by the second at which its first slot begins. */
  readonly #wholeDays = new Map<number, number>();

  constructor(shape: SteppedShape) {
    this.#shape = shape;
    this.#offsets = new ListedTimes(shape.offsets);
  }

  next(day: number, second: number): number {
    if (this.#offsets.perDay === 0) return -1;
    const { step, accepts } = this.#shape;
    let slot = this.#slotBefore(day, second);
    if (slot < 0) slot += step;
    for (; slot < SECONDS_PER_DAY; slot += step) {
      spend(1);
      if (accepts !== null && !accepts(slot)) continue;
      const offset = this.#offsets.next(0, second - slot);
      if (offset >= 0) return slot + offset;
    }
    return -1;
  }

  previous(day: number, second: number): number {
    if (this.#offsets.perDay === 0) return -1;
    const { step, accepts } = this.#shape;
    for (let slot = this.#slotBefore(day, second); slot >= 0; slot -= step) {
      spend(1);
      if (accepts !== null && !accepts(slot)) continue;
      const offset = this.#offsets.previous(0, second - slot);
      if (offset >= 0) return slot + offset;
    }
    return -1;
  }

  countBelow(day: number, second: number): number {
    const first = modulo(this.#shape.start - day * SECONDS_PER_DAY, this.#shape.step);
    if (second < SECONDS_PER_DAY) return this.#count(first, second);
    let count = this.#wholeDays.get(first);
    if (count === undefined) {
      count = this.#count(first, SECONDS_PER_DAY);
      if (this.#wholeDays.size < 2000) this.#wholeDays.set(first, count);
    }
    return count;
  }

  /** Number of fires before a second of a day whose first slot begins at `first`. */
  #count(first: number, end: number): number {
    const { step, accepts } = this.#shape;
    const startedSlots = Math.max(0, Math.ceil((end - first) / step));
    if (startedSlots === 0) return 0;
    const last = first + (startedSlots - 1) * step;
    let whole = startedSlots - 1;
    if (accepts !== null) {
      spend(startedSlots);
      whole = 0;
      for (let slot = first; slot < last; slot += step) if (accepts(slot)) whole += 1;
      if (!accepts(last)) return whole * this.#offsets.perDay;
    }
    return whole * this.#offsets.perDay + this.#offsets.countBelow(0, end - last);
  }

  /** The last slot that begins at or before a second of a day; negative means the day before. */
  #slotBefore(day: number, second: number): number {
    const { start, step } = this.#shape;
    return second - modulo(day * SECONDS_PER_DAY + second - start, step);
  }
}
