import type { Instant } from '../clock.ts';
import { elapsedNote } from './clock-notes.ts';
import type { FireSource } from './fire-sets.ts';
import type { WallRule } from './wall-rule.ts';
import { spend } from './work-limit.ts';
import type { Zone } from './zone.ts';

/** Cost of searching a segment, in work steps. */
const SEGMENT_COST = 20;

/** Number of segments to search one by one before jumping ahead pays off. */
const LINEAR_SEGMENTS = 8;

/** A rule without a fire in this many candidate segments never fires. */
const MAX_SEGMENTS = 1000;

/** Parameters of {@link PhasedFires}. */
export interface PhasedShape {
  readonly zone: Zone;
  /** The rule in wall time at an offset: a clock change shifts its INTERVAL on the wall clock. */
  readonly ruleOf: (offset: number) => WallRule;
  /** The wall time at which one of its hours or minutes begins at an offset. */
  readonly phaseOf: (offset: number) => number;
  /** The INTERVAL, in milliseconds. */
  readonly step: number;
  /** No query asks for an earlier instant. */
  readonly start: Instant;
}

/**
 * The fires of a rule whose INTERVAL counts real time and whose BY-parts name wall times, such as every 36 hours on
 * weekdays. Within a segment of one offset, real time and wall time advance equally. Between segments, the phase shifts
 * on the wall clock.
 */
export class PhasedFires implements FireSource {
  readonly #shape: PhasedShape;
  #offsets: readonly number[] | null = null;
  /** The instant from which on there is no fire. */
  #emptyFrom = Infinity;

  constructor(shape: PhasedShape) {
    this.#shape = shape;
  }

  next(from: Instant): Instant | null {
    if (from >= this.#emptyFrom) return null;
    const found = this.#next(from);
    if (found === null) this.#emptyFrom = from;
    return found;
  }

  previous(until: Instant): Instant | null {
    const { zone, ruleOf, start: earliest } = this.#shape;
    let cursor = until;
    for (let tries = 0; tries < MAX_SEGMENTS && cursor >= earliest; tries += 1) {
      spend(SEGMENT_COST);
      const { offset, start } = zone.segmentAt(cursor);
      const wall = ruleOf(offset).previous(cursor + offset);
      if (wall !== null && wall - offset >= start) return wall - offset;
      const behind = tries < LINEAR_SEGMENTS ? start - 1 : this.#latest(start - 1);
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
    while (cursor < to && cursor < this.#emptyFrom) {
      spend(SEGMENT_COST);
      const { offset, end } = zone.segmentAt(cursor);
      const found = ruleOf(offset).count(cursor + offset, Math.min(end, to) + offset);
      total += found;
      if (end >= to) break;
      empty = found > 0 ? 0 : empty + 1;
      const ahead = empty < LINEAR_SEGMENTS ? end : this.#soonest(end);
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
    for (let tries = 0; tries < MAX_SEGMENTS; tries += 1) {
      spend(SEGMENT_COST);
      const { offset, end } = zone.segmentAt(cursor);
      const wall = ruleOf(offset).next(cursor + offset);
      if (wall !== null && wall - offset < end) return wall - offset;
      const ahead = tries < LINEAR_SEGMENTS ? end : this.#soonest(end);
      if (ahead === null) return null;
      cursor = ahead;
    }
    return null;
  }

  /** A lower bound of the next fire, for any offset at that time. */
  #soonest(from: Instant): Instant | null {
    let soonest: Instant | null = null;
    for (const offset of this.#allOffsets()) {
      const wall = this.#shape.ruleOf(offset).next(from + offset);
      if (wall !== null && (soonest === null || wall - offset < soonest)) soonest = wall - offset;
    }
    return soonest;
  }

  /** An upper bound of the previous fire. */
  #latest(until: Instant): Instant | null {
    let latest: Instant | null = null;
    for (const offset of this.#allOffsets()) {
      const wall = this.#shape.ruleOf(offset).previous(until + offset);
      if (wall !== null && (latest === null || wall - offset > latest)) latest = wall - offset;
    }
    return latest;
  }

  #allOffsets(): readonly number[] {
    return (this.#offsets ??= this.#shape.zone.offsetsSince(this.#shape.start));
  }
}
