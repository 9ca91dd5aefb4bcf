import type { Instant } from '../clock.ts';
import { LAST_INSTANT, SECOND } from './civil.ts';
import { elapsedNote } from './clock-notes.ts';
import type { FireSource } from './fire-sets.ts';
import { ListedTimes } from './times-of-day.ts';
import { spend } from './work-limit.ts';
import type { Zone } from './zone.ts';

/** Cost of a query, in work steps. */
const QUERY_COST = 10;

/** Parameters of {@link IntervalFires}. */
export interface IntervalShape {
  readonly zone: Zone;
  /** The start of a minute in which it fires. */
  readonly origin: Instant;
  /** Milliseconds between two such minutes. */
  readonly step: number;
  /** The seconds within the minute at which it fires, ascending. */
  readonly seconds: readonly number[];
}

/**
 * Fires at a constant interval in real time, such as every n hours, regardless of the wall clock. Unbounded; every
 * query takes constant time.
 */
export class IntervalFires implements FireSource {
  readonly #shape: IntervalShape;
  readonly #seconds: ListedTimes;
  readonly #last: Instant;

  constructor(shape: IntervalShape) {
    this.#shape = shape;
    this.#seconds = new ListedTimes(shape.seconds);
    // The wall time of the last fire must also have a four-digit year.
    this.#last = LAST_INSTANT - Math.max(0, shape.zone.offsetAt(LAST_INSTANT));
  }

  next(from: Instant): Instant | null {
    spend(QUERY_COST);
    const { origin, step } = this.#shape;
    if (this.#seconds.perDay === 0) return null;
    const slot = origin + Math.floor((from - origin) / step) * step;
    const second = this.#seconds.next(0, Math.ceil((from - slot) / SECOND));
    const at =
      second >= 0 ? slot + second * SECOND : slot + step + this.#seconds.next(0, 0) * SECOND;
    return at > this.#last ? null : at;
  }

  previous(until: Instant): Instant | null {
    spend(QUERY_COST);
    const { origin, step } = this.#shape;
    if (this.#seconds.perDay === 0) return null;
    const limit = Math.min(until, this.#last);
    const slot = origin + Math.floor((limit - origin) / step) * step;
    const second = this.#seconds.previous(0, Math.floor((limit - slot) / SECOND));
    if (second >= 0) return slot + second * SECOND;
    return slot - step + this.#seconds.previous(0, 59) * SECOND;
  }

  count(from: Instant, to: Instant): number {
    spend(QUERY_COST);
    return to > from ? this.#below(to) - this.#below(from) : 0;
  }

  note(at: Instant): string | null {
    const { zone, step } = this.#shape;
    return elapsedNote({ zone, fires: this, step, phaseOf: (offset) => offset }, at);
  }

  /** Number of fires before an instant, from an arbitrary origin. */
  #below(at: Instant): number {
    const { origin, step } = this.#shape;
    const limit = Math.min(at, this.#last + 1);
    const slots = Math.floor((limit - origin) / step);
    const second = Math.ceil((limit - origin - slots * step) / SECOND);
    return slots * this.#seconds.perDay + this.#seconds.countBelow(0, second);
  }
}
