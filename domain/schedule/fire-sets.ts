import type { Instant } from '../clock.ts';
import type { FireSource } from './zoned-fires.ts';

/** Fires of a source that lie within bounds, both inclusive; null is no bound. */
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

/** A single fire, or none at all. */
export class Once implements FireSource {
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

/**
 * A source without some instants (EXDATE) and with some more (RDATE). Both lists are short: a rule's
 * text is at most 4,000 characters.
 */
export class AmendedFires implements FireSource {
  readonly #source: FireSource;
  readonly #isExcluded: (at: Instant) => boolean;
  readonly #excluded: readonly Instant[];
  readonly #added: readonly Instant[];

  /**
   * `excluded` are the source's fires that are left out, in order; `added` instants fire too, unless
   * they are excluded.
   */
  constructor(source: FireSource, excluded: readonly Instant[], added: readonly Instant[]) {
    this.#source = source;
    const out = new Set(excluded);
    this.#isExcluded = (at) => out.has(at);
    this.#excluded = [...out].filter((at) => source.next(at) === at);
    this.#added = [...new Set(added)]
      .filter((at) => !out.has(at) && source.next(at) !== at)
      .sort((a, b) => a - b);
  }

  next(from: Instant): Instant | null {
    let regular = this.#source.next(from);
    while (regular !== null && this.#isExcluded(regular)) regular = this.#source.next(regular + 1);
    const added = this.#added.find((at) => at >= from);
    if (added === undefined) return regular;
    return regular === null || added < regular ? added : regular;
  }

  previous(until: Instant): Instant | null {
    let regular = this.#source.previous(until);
    while (regular !== null && this.#isExcluded(regular)) {
      regular = this.#source.previous(regular - 1);
    }
    const added = this.#added.findLast((at) => at <= until);
    if (added === undefined) return regular;
    return regular === null || added > regular ? added : regular;
  }

  count(from: Instant, to: Instant): number {
    const within = (at: Instant): boolean => at >= from && at < to;
    return (
      this.#source.count(from, to) -
      this.#excluded.filter(within).length +
      this.#added.filter(within).length
    );
  }

  note(at: Instant): string | null {
    return this.#source.note(at);
  }
}
