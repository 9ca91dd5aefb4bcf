import type { Instant } from '../clock.ts';
import { elapsedNote } from './clock-notes.ts';
import type { WallRule } from './wall-rule.ts';
import { spend } from './work.ts';
import type { Zone } from './zone.ts';
import type { FireSource } from './zoned-fires.ts';

/** Steps of work for a stretch. */
const STRETCH = 20;

/** So many stretches in a row are looked through before a jump over more of them pays off. */
const FEW_STRETCHES = 8;

/** A fire that has not come after so many stretches that could have had one never comes. */
const MOST_STRETCHES = 1000;

/** What {@link PhasedFires} are made of. */
export interface PhasedShape {
  readonly zone: Zone;
  /** The rule in wall time while the zone has some offset: a clock change moves its INTERVAL on the wall. */
  readonly ruleOf: (offset: number) => WallRule;
  /** Where one of its hours or minutes begins on the wall clock then. */
  readonly phaseOf: (offset: number) => number;
  /** Milliseconds of its INTERVAL. */
  readonly step: number;
  /** Nothing before it is asked for. */
  readonly start: Instant;
}

/**
 * The fires of a rule that counts its INTERVAL in real time and chooses by the wall clock, such as every 36 hours on
 * weekdays. In a stretch of one offset both are the same thing; from one stretch to the next the phase moves on the
 * wall.
 */
export class PhasedFires implements FireSource {
  readonly #shape: PhasedShape;
  #offsets: readonly number[] | null = null;
  /** From here on nothing comes. */
  #barren = Infinity;

  constructor(shape: PhasedShape) {
    this.#shape = shape;
  }

  next(from: Instant): Instant | null {
    if (from >= this.#barren) return null;
    const found = this.#next(from);
    if (found === null) this.#barren = from;
    return found;
  }

  previous(until: Instant): Instant | null {
    const { zone, ruleOf, start: earliest } = this.#shape;
    let cursor = until;
    for (let tries = 0; tries < MOST_STRETCHES && cursor >= earliest; tries += 1) {
      spend(STRETCH);
      const { offset, start } = zone.segmentAt(cursor);
      const wall = ruleOf(offset).previous(cursor + offset);
      if (wall !== null && wall - offset >= start) return wall - offset;
      const behind = tries < FEW_STRETCHES ? start - 1 : this.#latest(start - 1);
      if (behind === null) return null;
      cursor = behind;
    }
    return null;
  }

  count(from: Instant, to: Instant): number {
    const { zone, ruleOf } = this.#shape;
    let total = 0;
    let cursor = from;
    let empty = 0;
    while (cursor < to && cursor < this.#barren) {
      spend(STRETCH);
      const { offset, end } = zone.segmentAt(cursor);
      const found = ruleOf(offset).count(cursor + offset, Math.min(end, to) + offset);
      total += found;
      if (end >= to) break;
      empty = found > 0 ? 0 : empty + 1;
      const ahead = empty < FEW_STRETCHES ? end : this.#soonest(end);
      if (ahead === null) break;
      cursor = ahead;
    }
    return total;
  }

  note(at: Instant): string | null {
    return elapsedNote({ ...this.#shape, fires: this }, at);
  }

  #next(from: Instant): Instant | null {
    const { zone, ruleOf } = this.#shape;
    let cursor = from;
    for (let tries = 0; tries < MOST_STRETCHES; tries += 1) {
      spend(STRETCH);
      const { offset, end } = zone.segmentAt(cursor);
      const wall = ruleOf(offset).next(cursor + offset);
      if (wall !== null && wall - offset < end) return wall - offset;
      const ahead = tries < FEW_STRETCHES ? end : this.#soonest(end);
      if (ahead === null) return null;
      cursor = ahead;
    }
    return null;
  }

  /** No fire is earlier, whatever the offset is by then. */
  #soonest(from: Instant): Instant | null {
    let soonest: Instant | null = null;
    for (const offset of this.#known()) {
      const wall = this.#shape.ruleOf(offset).next(from + offset);
      if (wall !== null && (soonest === null || wall - offset < soonest)) soonest = wall - offset;
    }
    return soonest;
  }

  /** No fire is later. */
  #latest(until: Instant): Instant | null {
    let latest: Instant | null = null;
    for (const offset of this.#known()) {
      const wall = this.#shape.ruleOf(offset).previous(until + offset);
      if (wall !== null && (latest === null || wall - offset > latest)) latest = wall - offset;
    }
    return latest;
  }

  #known(): readonly number[] {
    return (this.#offsets ??= this.#shape.zone.offsetsSince(this.#shape.start));
  }
}
