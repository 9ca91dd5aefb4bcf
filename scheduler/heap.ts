/**
 * A binary heap: the least element first. Elements are never removed from the middle: whoever changes an
 * element's place adds it again and passes over the old entry when it comes up.
 */
export class Heap<T> {
  private readonly items: T[] = [];
  private readonly before: (a: T, b: T) => boolean;

  constructor(before: (a: T, b: T) => boolean) {
    this.before = before;
  }

  get size(): number {
    return this.items.length;
  }

  peek(): T | undefined {
    return this.items[0];
  }

  push(item: T): void {
    const { items, before } = this;
    let index = items.push(item) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = items[parent] as T;
      if (!before(item, above)) break;
      items[index] = above;
      index = parent;
    }
    items[index] = item;
  }

  pop(): T | undefined {
    const { items } = this;
    if (items.length === 0) return undefined;
    const top = items[0];
    const last = items.pop();
    if (items.length > 0 && last !== undefined) this.sink(last);
    return top;
  }

  /** Keeps what passes; for when many entries have become void. */
  retain(keeps: (item: T) => boolean): void {
    const kept = this.items.filter(keeps);
    this.items.length = 0;
    for (const item of kept) this.push(item);
  }

  private sink(item: T): void {
    const { items, before } = this;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= items.length) break;
      const right = child + 1;
      if (right < items.length && before(items[right] as T, items[child] as T)) child = right;
      if (!before(items[child] as T, item)) break;
      items[index] = items[child] as T;
      index = child;
    }
    items[index] = item;
  }
}
