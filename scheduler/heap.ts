/**
 * A binary heap, least element first. Elements are not removed from the middle. To move an element, push it again and
 * skip the old entry when it is popped.
 */
export class Heap<T> {
  readonly #items: T[] = [];
  readonly #before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    let index = this.#items.push(item) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = this.#items[parent] as T;
      if (!this.#before(item, above)) break;
      this.#items[index] = above;
      index = parent;
    }
    this.#items[index] = item;
  }

  pop(): T | undefined {
    if (this.#items.length === 0) return undefined;
    const top = this.#items[0];
    const last = this.#items.pop();
    if (this.#items.length > 0 && last !== undefined) this.#sink(last);
    return top;
  }

  /** Keeps the elements that pass; for removing many stale entries. */
  retain(keeps: (item: T) => boolean): void {
    const kept = this.#items.filter(keeps);
    this.#items.length = 0;
    for (const item of kept) this.push(item);
  }

  #sink(item: T): void {
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= this.#items.length) break;
      const right = child + 1;
      if (
        right < this.#items.length &&
        this.#before(this.#items[right] as T, this.#items[child] as T)
      )
        child = right;
      if (!this.#before(this.#items[child] as T, item)) break;
      this.#items[index] = this.#items[child] as T;
      index = child;
    }
    this.#items[index] = item;
  }
}
