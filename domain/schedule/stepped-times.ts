import { modulo, SECONDS_PER_DAY } from './civil.ts';
import type { TimesOfDay } from './times-of-day.ts';

/** A rule by the hour or minute whose interval doesn't fit into a day, so that every day differs. */
export interface SteppedShape {
  /** The start of one of its hours or minutes, in seconds since 1970-01-01T00:00 wall time. */
  readonly start: number;
  /** Seconds from one to the next. */
  readonly step: number;
  /** Whether one that begins at this second of the day is taken; null when all are. */
  readonly accepts: ((second: number) => boolean) | null;
  /** The seconds within one at which the rule fires, in order. */
  readonly offsets: readonly number[];
}

/** The times of day of such a rule. */
export class SteppedTimes implements TimesOfDay {
  readonly perDay = null;
  readonly #shape: SteppedShape;
  /** Fires of a whole day, by the second at which its first hour or minute begins. */
  readonly #wholeDays = new Map<number, number>();

  constructor(shape: SteppedShape) {
    this.#shape = shape;
  }

  next(day: number, second: number): number {
    const { step, accepts, offsets } = this.#shape;
    let slot = this.#slotBefore(day, second);
    if (slot < 0) slot += step;
    for (; slot < SECONDS_PER_DAY; slot += step) {
      if (accepts !== null && !accepts(slot)) continue;
      for (const offset of offsets) if (slot + offset >= second) return slot + offset;
    }
    return -1;
  }

  previous(day: number, second: number): number {
    const { step, accepts, offsets } = this.#shape;
    for (let slot = this.#slotBefore(day, second); slot >= 0; slot -= step) {
      if (accepts !== null && !accepts(slot)) continue;
      for (let i = offsets.length - 1; i >= 0; i--) {
        const time = slot + (offsets[i] ?? 0);
        if (time <= second) return time;
      }
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

  #count(first: number, end: number): number {
    const { step, accepts, offsets } = this.#shape;
    let count = 0;
    for (let slot = first; slot < end; slot += step) {
      if (accepts !== null && !accepts(slot)) continue;
      for (const offset of offsets) if (slot + offset < end) count++;
    }
    return count;
  }

  /** The last hour or minute that begins at or before a second of a day; negative: the day before. */
  #slotBefore(day: number, second: number): number {
    const { start, step } = this.#shape;
    return second - modulo(day * SECONDS_PER_DAY + second - start, step);
  }
}
