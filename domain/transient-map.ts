/** Entries that were deleted before the others move, at least. */
const FEW = 256;

/**
 * A Map for entries that come and go, as what is under way does: what was deleted is let go of at once.
 *
 * V8's Map moves its entries to another table whenever too many were deleted, and leaves the one before, with all that
 * stood in it, linked to the next (`SetNextTable` in `src/objects/ordered-hash-table.cc`). Once one such table is old, a
 * collection of the young takes all those behind it for reachable, and copies everything that was ever in the Map when it
 * moved (nepotism, in the words of the literature), until the next full collection. Here the entries move to a new Map,
 * which nothing old leads to: `docs/decisions/0021`.
 */
export class TransientMap<K, V> {
  #entries = new Map<K, V>();
  #deleted = 0;

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  has(key: K): boolean {
    return this.#entries.has(key);
  }

  set(key: K, value: V): void {
    this.#entries.set(key, value);
  }

  /** @returns whether it was there */
  delete(key: K): boolean {
    if (!this.#entries.delete(key)) return false;
    this.#deleted += 1;
    // Each deletion pays for the move of one entry at most.
    if (this.#deleted >= FEW && this.#deleted >= this.#entries.size) this.#moveTo(this.#entries);
    return true;
  }

  clear(): void {
    this.#moveTo([]);
  }

  /** In the order in which the keys came. What is deleted meanwhile may come all the same. */
  values(): IterableIterator<V> {
    return this.#entries.values();
  }

  #moveTo(entries: Iterable<readonly [K, V]>): void {
    this.#entries = new Map(entries);
    this.#deleted = 0;
  }
}
