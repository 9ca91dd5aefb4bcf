/** A cache of at most `limit` values. A full cache drops the oldest value. */
export class BoundedCache<T> {
  readonly #values = new Map<string, T>();
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The value of a key, computed on first use. */
  get(key: string, compute: () => T): T {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const value = compute();
    if (this.#values.size >= this.#limit) {
      const [oldest] = this.#values.keys();
      if (oldest !== undefined) this.#values.delete(oldest);
    }
    this.#values.set(key, value);
    return value;
  }
}
