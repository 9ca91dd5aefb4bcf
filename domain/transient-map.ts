const MIN_DELETED_BEFORE_MOVE = 256;

/**
 * A Map for short-lived entries, such as runs in progress, that frees deleted ones at once.
 *
 * V8's Map moves its entries to another table after many deletions, and keeps the old table linked to the new one
 * (`SetNextTable` in `src/objects/ordered-hash-table.cc`). Once such a table is old, minor collections keep and copy
 * everything behind it (nepotism) until the next full collection. Here the entries move to a new Map that no old one
 * refers to: `docs/decisions/0021`.
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

  /** @returns whether the key was there */
  delete(key: K): boolean {
    if (!this.#entries.delete(key)) return false;
    this.#deleted += 1;
    // Each deletion pays for the move of at most one entry.
    if (this.#deleted >= MIN_DELETED_BEFORE_MOVE && this.#deleted >= this.#entries.size)
      this.#moveTo(this.#entries);
    return true;
  }

  clear(): void {
    this.#moveTo([]);
  }

  /** In insertion order. May include entries that are deleted meanwhile. */
  values(): IterableIterator<V> {
    return this.#entries.values();
  }

  #moveTo(entries: Iterable<readonly [K, V]>): void {
    this.#entries = new Map(entries);
    this.#deleted = 0;
  }
}
