import type { Instant } from '../clock.ts';
import { spend } from './work-limit.ts';

/** An ordered set of instants in milliseconds, without bounds of its own. */
export interface FireSource {
  /** The first fire ≥ an instant. */
  next(from: Instant): Instant | null;
  /** The last fire ≤ an instant. */
  previous(until: Instant): Instant | null;
  /** The number of fires in [from, to). */
  count(from: Instant, to: Instant): number;
  /** How a clock change moved, repeated or skipped a fire or times before it; null if it did not. */
  note(at: Instant): string | null;
}

/** The fires of a source within bounds, both inclusive; null means unbounded. */
export class BoundedFires implements FireSource {
  readonly #source: FireSource;
  readonly #first: Instant;
  readonly #last: Instant;

  constructor(source: FireSource, first: Instant | null, last: Instant | null) {
    this.#source = source;
    this.#first = first ?? -Infinity;
    this.#last = last ?? Infinity;
  }

  next(from: Instant): Instant | null {
    if (from > this.#last) return null;
    const found = this.#source.next(Math.max(from, this.#first));
    return found === null || found > this.#last ? null : found;
  }

  previous(until: Instant): Instant | null {
    if (until < this.#first) return null;
    const found = this.#source.previous(Math.min(until, this.#last));
    return found === null || found < this.#first ? null : found;
  }

  count(from: Instant, to: Instant): number {
    const low = Math.max(from, this.#first);
    const high = Math.min(to, this.#last + 1);
    return high > low ? this.#source.count(low, high) : 0;
  }

  note(at: Instant): string | null {
    return this.#source.note(at);
  }
}

/** A source of at most one fire. */
export class SingleFire implements FireSource {
  readonly #at: Instant | null;
  readonly #note: string | null;

  constructor(at: Instant | null, note: string | null) {
    this.#at = at;
    this.#note = note;
  }

  next(from: Instant): Instant | null {
    return this.#at !== null && this.#at >= from ? this.#at : null;
  }

  previous(until: Instant): Instant | null {
    return this.#at !== null && this.#at <= until ? this.#at : null;
  }

  count(from: Instant, to: Instant): number {
    return this.#at !== null && this.#at >= from && this.#at < to ? 1 : 0;
  }

  note(): string | null {
    return this.#note;
  }
}

/** The instants in [from, to). */
export interface Span {
  readonly from: Instant;
  readonly to: Instant;
}

/**
 * A source minus some spans (EXDATE) plus some fires (RDATE); the spans also remove added fires. Both lists are short,
 * because a rule has at most 4,000 characters.
 */
export class AmendedFires implements FireSource {
  readonly #source: FireSource;
  readonly #excluded: readonly Span[];
  readonly #added: readonly Instant[];
  readonly #notes: ReadonlyMap<Instant, string>;

  /** @param notes notes on clock changes for fires that do not come from the rule */
  constructor(
    source: FireSource,
    excluded: readonly Span[],
    added: readonly Instant[],
    notes: ReadonlyMap<Instant, string>,
  ) {
    this.#source = source;
    this.#notes = notes;
    this.#excluded = merged(excluded);
    // Sorted, since sources cache sequential searches.
    this.#added = [...new Set(added)]
      .sort((a, b) => a - b)
      .filter((at) => this.#exclusion(at) === undefined && source.next(at) !== at);
  }

  next(from: Instant): Instant | null {
    let regular = this.#source.next(from);
    while (regular !== null) {
      const span = this.#exclusion(regular);
      if (span === undefined) break;
      regular = this.#source.next(span.to);
    }
    const added = this.#added.find((at) => at >= from);
    if (added === undefined) return regular;
    return regular === null || added < regular ? added : regular;
  }

  previous(until: Instant): Instant | null {
    let regular = this.#source.previous(until);
    while (regular !== null) {
      const span = this.#exclusion(regular);
      if (span === undefined) break;
      regular = this.#source.previous(span.from - 1);
    }
    const added = this.#added.findLast((at) => at <= until);
    if (added === undefined) return regular;
    return regular === null || added > regular ? added : regular;
  }

  count(from: Instant, to: Instant): number {
    let total = this.#source.count(from, to);
    spend(this.#excluded.length + this.#added.length);
    for (const span of this.#excluded) {
      const low = Math.max(from, span.from);
      const high = Math.min(to, span.to);
      if (high > low) total -= this.#source.count(low, high);
    }
    for (const at of this.#added) if (at >= from && at < to) total++;
    return total;
  }

  note(at: Instant): string | null {
    return this.#notes.get(at) ?? this.#source.note(at);
  }

  #exclusion(at: Instant): Span | undefined {
    let low = 0;
    let high = this.#excluded.length;
    spend(5);
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#excluded[middle]?.to ?? Infinity) <= at) low = middle + 1;
      else high = middle;
    }
    const span = this.#excluded[low];
    return span !== undefined && at >= span.from ? span : undefined;
  }
}

/** Merges overlapping spans, in order. */
function merged(spans: readonly Span[]): Span[] {
  const result: Span[] = [];
  for (const span of [...spans].sort((a, b) => a.from - b.from)) {
    const last = result.at(-1);
    if (last === undefined || span.from > last.to) result.push(span);
    else if (span.to > last.to) result[result.length - 1] = { from: last.from, to: span.to };
  }
  return result;
}
