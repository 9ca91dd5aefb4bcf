import type { Instant } from '../clock.ts';
import { droppedNote, movedNote, repeatedNote, repeatedNoteText } from './clock-notes.ts';
import type { FireSource } from './fire-sets.ts';
import type { WallRule } from './wall-rule.ts';
import { spend } from './work-limit.ts';
import { MAX_OFFSET, MAX_SHIFT, type Segment, type Zone } from './zone.ts';

/** Cost of searching a segment, in work steps. */
const SEGMENT_COST = 20;

/**
 * The instants at which a wall rule fires in a zone.
 *
 * An *elapsed* rule fires only at wall times that exist, in both passes of a repeated hour. A *fixed* rule fires once
 * for every wall time. A missing wall time fires by the offset before the change (02:30 becomes 03:30). A repeated wall
 * time fires the first time. Wall times that fall on the same instant are one fire.
 *
 * The search goes by segments of one offset, in which wall time and elapsed time advance equally. For a fixed rule, a
 * segment leaves out wall times that repeat the segment before, and takes over those in the gap between them.
 */
export class ZonedFires implements FireSource {
  readonly #rule: WallRule;
  readonly #zone: Zone;
  readonly #elapsed: boolean;

  constructor(rule: WallRule, zone: Zone, elapsed: boolean) {
    this.#rule = rule;
    this.#zone = zone;
    this.#elapsed = elapsed;
  }

  next(from: Instant): Instant | null {
    let cursor = from;
    for (;;) {
      spend(SEGMENT_COST);
      const segment = this.#zone.segmentAt(cursor);
      const { offset, end } = segment;
      const low = Math.max(cursor + offset, this.#lowest(segment));
      const wall = this.#rule.next(low);
      const normal = wall !== null && wall < end + offset ? wall - offset : null;
      const moved = this.#nextMoved(segment, cursor);
      if (moved !== null && (normal === null || moved < normal)) return moved;
      if (normal !== null) return normal;
      // Continue with the next segment, or skip segments in which the rule has no wall time.
      const ahead = this.#rule.next(end + offset - MAX_SHIFT);
      if (ahead === null) return null;
      cursor = Math.max(end, ahead - MAX_OFFSET);
    }
  }

  previous(until: Instant): Instant | null {
    let cursor = until;
    for (;;) {
      spend(SEGMENT_COST);
      const segment = this.#zone.segmentAt(cursor);
      const { offset, start, before } = segment;
      const lowest = this.#lowest(segment);
      const wall = this.#rule.previous(Math.min(cursor, segment.end - 1) + offset);
      const normal = wall !== null && wall >= lowest ? wall - offset : null;
      const moved = this.#previousMoved(segment, cursor);
      if (moved !== null && (normal === null || moved > normal)) return moved;
      if (normal !== null) return normal;
      const behind = this.#rule.previous(start + Math.max(offset, before) + MAX_SHIFT);
      if (behind === null) return null;
      cursor = Math.min(start - 1, behind + MAX_OFFSET);
    }
  }

  count(from: Instant, to: Instant): number {
    let total = 0;
    let cursor = from;
    while (cursor < to) {
      spend(SEGMENT_COST);
      // Skip segments in which the rule has no wall time.
      const ahead = this.#rule.next(cursor - MAX_OFFSET);
      if (ahead === null) break;
      cursor = Math.max(cursor, ahead - MAX_OFFSET);
      if (cursor >= to) break;
      const segment = this.#zone.segmentAt(cursor);
      const { offset } = segment;
      const end = Math.min(segment.end, to);
      const low = Math.max(cursor + offset, this.#lowest(segment));
      if (end + offset > low) total += this.#rule.count(low, end + offset);
      let moved = this.#nextMoved(segment, cursor);
      while (moved !== null && moved < end) {
        if (this.#rule.next(moved + offset) !== moved + offset) total++;
        moved = this.#nextMoved(segment, moved + 1);
      }
      cursor = end;
    }
    return total;
  }

  note(at: Instant): string | null {
    if (this.#elapsed) return repeatedNote(this.#zone, this, at) ?? this.#dropped(at);
    const segment = this.#zone.segmentAt(at);
    const { offset, before, start } = segment;
    if (at < start + offset - before && this.#rule.next(at + before) === at + before) {
      return movedNote(at + before, this.#zone, at);
    }
    const wall = at + offset;
    const { at: first, kind } = this.#zone.resolve(wall);
    if (kind !== 'overlap' || first !== at) return null;
    return repeatedNoteText(wall, this.#zone, 'fires the first time');
  }

  /** Note for the wall times that an elapsed rule left out since the fire before. */
  #dropped(at: Instant): string | null {
    const previous = this.previous(at - 1);
    if (previous === null) return null;
    const wall = this.#rule.next(previous + this.#zone.offsetAt(previous) + 1);
    if (wall === null || wall >= at + this.#zone.offsetAt(at)) return null;
    const missing = this.#zone.resolve(wall);
    if (missing.kind !== 'gap') return null;
    const { start, offset } = this.#zone.segmentAt(missing.at);
    const count = this.#rule.count(wall, start + offset);
    const last = this.#rule.previous(start + offset - 1) ?? wall;
    return droppedNote({ count, first: wall, last }, this.#zone);
  }

  /** The lowest wall time that fires in a segment. */
  #lowest({ start, offset, before }: Segment): number {
    return start + (this.#elapsed ? offset : Math.max(offset, before));
  }

  /** The first fire ≥ `from` that the gap at a segment's beginning moved into it. */
  #nextMoved({ start, offset, before }: Segment, from: Instant): Instant | null {
    if (this.#elapsed || offset <= before || from >= start + offset - before) return null;
    const wall = this.#rule.next(Math.max(from, start) + before);
    return wall !== null && wall < start + offset ? wall - before : null;
  }

  /** The last fire ≤ `until` that the gap at a segment's beginning moved into it. */
  #previousMoved({ start, offset, before }: Segment, until: Instant): Instant | null {
    if (this.#elapsed || offset <= before || until < start) return null;
    const wall = this.#rule.previous(Math.min(until, start + offset - before - 1) + before);
    return wall !== null && wall >= start + before ? wall - before : null;
  }
}
