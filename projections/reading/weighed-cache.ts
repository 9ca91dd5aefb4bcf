/** What is dropped at once when a cache is full, as a part of it: a Map finds its first entry by passing over the dropped. */
const DROPPED = 0.1;

interface Entry<V> {
  readonly value: V;
  readonly weight: number;
}

/** What was used last, within bounds of number and of weight. */
export class WeighedCache<V> {
  private readonly entries: number;
  private readonly weight: number;
  private readonly weigh: (value: V) => number;
  private readonly kept = new Map<string, Entry<V>>();
  private total = 0;

  /**
   * @param options.entries how many at most
   * @param options.weight of all together at most, in what `weigh` measures
   * @param options.weigh default: the length of the value as JSON, which is about what it takes in memory
   */
  constructor(options: {
    readonly entries: number;
    readonly weight: number;
    readonly weigh?: (value: V) => number;
  }) {
    this.entries = options.entries;
    this.weight = options.weight;
    this.weigh = options.weigh ?? lengthAsJson;
  }

  get size(): number {
    return this.kept.size;
  }

  /** Looks without counting it as a use. */
  peek(key: string): V | undefined {
    return this.kept.get(key)?.value;
  }

  get(key: string): V | undefined {
    const entry = this.kept.get(key);
    if (entry === undefined) return undefined;
    // The most recently used stand last.
    this.kept.delete(key);
    this.kept.set(key, entry);
    return entry.value;
  }

  /** Keeps a value, also one that alone exceeds the bound: whoever has just read it is about to use it. */
  set(key: string, value: V): void {
    this.delete(key);
    const entry = { value, weight: this.weigh(value) };
    this.kept.set(key, entry);
    this.total += entry.weight;
    if (this.kept.size <= this.entries && this.total <= this.weight) return;
    const entries = Math.ceil(this.entries * (1 - DROPPED));
    const weight = this.weight * (1 - DROPPED);
    for (const [oldest] of this.kept) {
      if (this.kept.size <= entries && this.total <= weight) break;
      if (oldest === key && this.entries > 0) break;
      this.delete(oldest);
    }
  }

  delete(key: string): void {
    const entry = this.kept.get(key);
    if (entry === undefined) return;
    this.kept.delete(key);
    this.total -= entry.weight;
  }

  clear(): void {
    this.kept.clear();
    this.total = 0;
  }
}

const lengthAsJson = (value: unknown): number => JSON.stringify(value)?.length ?? 0;
