/** A first-in, first-out list. Each operation takes constant time on average. */
export class Fifo<T> {
  #items: T[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  get first(): T | undefined {
    return this.#items[this.#head];
  }

  get last(): T | undefined {
    return this.size === 0 ? undefined : this.#items.at(-1);
  }

  add(item: T): void {
    this.#items.push(item);
  }

  /** Adds an item before the last one. */
  addBeforeLast(item: T): void {
    const last = this.#items.at(-1);
    if (this.size === 0 || last === undefined) this.add(item);
    else this.#items.splice(-1, 1, item, last);
  }

  removeFirst(): void {
    if (this.size === 0) return;
    this.#head += 1;
    // Moving the rest costs no more than the removals before it.
    if (this.#head * 2 < this.#items.length) return;
    this.#items = this.#items.slice(this.#head);
    this.#head = 0;
  }

  /** Moves the first item to the end. */
  rotate(): void {
    const { first } = this;
    if (first === undefined || this.size === 1) return;
    this.removeFirst();
    this.add(first);
  }
}
