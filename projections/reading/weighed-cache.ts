/**
 * The fraction of entries that a full cache drops. Dropping them one by one would be slow, because a Map finds its
 * first entry by skipping deleted entries.
 */
const DROPPED_FRACTION = 0.1;

interface Entry<V> {
  readonly value: V;
  readonly weight: number;
}

/** A least-recently-used cache, bounded by number and by weight. */
export class WeighedCache<V> {
  readonly #entries: number;
  readonly #weight: number;
  readonly #weigh: (value: V) => number;
  readonly #values = new Map<string, Entry<V>>();
  /** The most recently used key. */
  #newest: string | undefined;
  #total = 0;

  /**
   * @param options.entries how many at most
   * @param options.weight of all values together at most, as measured by `weigh`
   * @param options.weigh default: the value's length as JSON, roughly its memory
   */
  constructor(options: {
    readonly entries: number;
    readonly weight: number;
    readonly weigh?: (value: V) => number;
  }) {
    this.#entries = options.entries;
    this.#weight = options.weight;
    this.#weigh = options.weigh ?? lengthAsJson;
  }

  get size(): number {
    return this.#values.size;
  }

  /** Reads a value; this does not count as a use. */
  peek(key: string): V | undefined {
    return this.#values.get(key)?.value;
  }

  get(key: string): V | undefined {
    const entry = this.#values.get(key);
    if (entry === undefined) return undefined;
    // The most recently used entries are last.
    if (key !== this.#newest) {
      this.#values.delete(key);
      this.#values.set(key, entry);
      this.#newest = key;
    }
    return entry.value;
  }

  /** Keeps a value, even one that alone exceeds the limit: its reader is about to use it. */
  set(key: string, value: V): void {
    this.delete(key);
    const entry = { value, weight: this.#weigh(value) };
    this.#values.set(key, entry);
    this.#newest = key;
    this.#total += entry.weight;
    if (this.#values.size <= this.#entries && this.#total <= this.#weight) return;
    const entries = Math.ceil(this.#entries * (1 - DROPPED_FRACTION));
    const weight = this.#weight * (1 - DROPPED_FRACTION);
    for (const [oldest] of this.#values) {
      if (this.#values.size <= entries && this.#total <= weight) break;
      if (oldest === key && this.#entries > 0) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.#values.get(key);
    if (entry === undefined) return;
    this.#values.delete(key);
    this.#total -= entry.weight;
  }

  clear(): void {
    this.#values.clear();
    this.#total = 0;
  }
}

const lengthAsJson = (value: unknown): number => JSON.stringify(value)?.length ?? 0;
