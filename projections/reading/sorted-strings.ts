/** A set of strings that is read in order, page by page. */
export class SortedStrings {
  readonly #strings = new Set<string>();
  /** null until the set is read. Most strings are added in bulk before that, and sorting them once is cheaper. */
  #order: string[] | null = null;

  get size(): number {
    return this.#strings.size;
  }

  add(value: string): void {
    if (this.#strings.has(value)) return;
    this.#strings.add(value);
    this.#order?.splice(placeOf(this.#order, value), 0, value);
  }

  delete(value: string): void {
    if (!this.#strings.delete(value)) return;
    this.#order?.splice(placeOf(this.#order, value), 1);
  }

  values(): Iterable<string> {
    return this.#strings;
  }

  /**
   * A page, in order.
   * @param after strings after it; null: from the first
   * @param offset how many of them to leave out
   */
  page(after: string | null, offset: number, limit: number): readonly string[] {
    const order = (this.#order ??= [...this.#strings].sort());
    const place = after === null ? 0 : placeOf(order, after);
    const from = (order[place] === after ? place + 1 : place) + offset;
    return order.slice(from, from + limit);
  }
}

/** The index of a string in sorted strings, or the index at which it would be inserted. */
function placeOf(order: readonly string[], value: string): number {
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((order[middle] ?? '') < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
