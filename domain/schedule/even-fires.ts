import type { Instant } from '../clock.ts';
import { LAST_INSTANT, SECOND } from './civil.ts';
import { elapsedNote } from './clock-notes.ts';
import { ListedTimes } from './times-of-day.ts';
import { spend } from './work.ts';
import type { Zone } from './zone.ts';
import type { FireSource } from './zoned-fires.ts';

/** Steps of work of an answer. */
const ANSWER = 10;

/** What {@link EvenFires} are made of. */
export interface EvenShape {
  readonly zone: Zone;
  /** The start of one of the minutes in which it fires. */
  readonly begun: Instant;
  /** Milliseconds from one such minute to the next. */
  readonly step: number;
  /** The seconds of the minute at which it fires, in order. */
  readonly seconds: readonly number[];
}

/**
 * Fires at even distances in real time, without a beginning: every n hours or minutes, whatever the wall clock says.
 * Any question takes the same time, and no clock change has to be looked for.
 */
export class EvenFires implements FireSource {
  readonly #shape: EvenShape;
  readonly #seconds: ListedTimes;
  readonly #last: Instant;

  constructor(shape: EvenShape) {
    this.#shape = shape;
    this.#seconds = new ListedTimes(shape.seconds);
    // Its wall time has a year of four digits too.
    this.#last = LAST_INSTANT - Math.max(0, shape.zone.offsetAt(LAST_INSTANT));
  }

  next(from: Instant): Instant | null {
    spend(ANSWER);
    const { begun, step } = this.#shape;
    if (this.#seconds.perDay === 0) return null;
    const slot = begun + Math.floor((from - begun) / step) * step;
    const second = this.#seconds.next(0, Math.ceil((from - slot) / SECOND));
    const at =
      second >= 0 ? slot + second * SECOND : slot + step + this.#seconds.next(0, 0) * SECOND;
    return at > this.#last ? null : at;
  }

  previous(until: Instant): Instant | null {
    spend(ANSWER);
    const { begun, step } = this.#shape;
    if (this.#seconds.perDay === 0) return null;
    const limit = Math.min(until, this.#last);
    const slot = begun + Math.floor((limit - begun) / step) * step;
    const second = this.#seconds.previous(0, Math.floor((limit - slot) / SECOND));
    if (second >= 0) return slot + second * SECOND;
    return slot - step + this.#seconds.previous(0, 59) * SECOND;
  }

  count(from: Instant, to: Instant): number {
    spend(ANSWER);
    return to > from ? this.#below(to) - this.#below(from) : 0;
  }

  note(at: Instant): string | null {
    const { zone, step } = this.#shape;
    return elapsedNote({ zone, fires: this, step, phaseOf: (offset) => offset }, at);
  }

  /** Fires before an instant, from an arbitrary one on. */
  #below(at: Instant): number {
    const { begun, step } = this.#shape;
    const limit = Math.min(at, this.#last + 1);
    const slots = Math.floor((limit - begun) / step);
    const second = Math.ceil((limit - begun - slots * step) / SECOND);
    return slots * this.#seconds.perDay + this.#seconds.countBelow(0, second);
  }
}
