/** A set of texts that is read in order, page by page. */
export class SortedTexts {
  readonly #texts = new Set<string>();
  /** null until somebody asks: many are often added before anyone does, and sorting them once is less work. */
  #order: string[] | null = null;

  get size(): number {
    return this.#texts.size;
  }

  /** Adds a text, unless it is there. */
  add(text: string): void {
    if (this.#texts.has(text)) return;
    this.#texts.add(text);
    this.#order?.splice(placeOf(this.#order, text), 0, text);
  }

  /** Takes a text away, where it is there. */
  delete(text: string): void {
    if (!this.#texts.delete(text)) return;
    this.#order?.splice(placeOf(this.#order, text), 1);
  }

  /** All, in no order. */
  values(): Iterable<string> {
    return this.#texts;
  }

  /**
   * Some of them, in order.
   * @param after those behind it; null: from the first
   * @param offset how many of them are passed over
   */
  page(after: string | null, offset: number, limit: number): readonly string[] {
    const order = (this.#order ??= [...this.#texts].sort());
    const place = after === null ? 0 : placeOf(order, after);
    const from = (order[place] === after ? place + 1 : place) + offset;
    return order.slice(from, from + limit);
  }
}

/** Where a text stands, or would, in texts that are in order. */
function placeOf(order: readonly string[], text: string): number {
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((order[middle] ?? '') < text) low = middle + 1;
    else high = middle;
  }
  return low;
}
