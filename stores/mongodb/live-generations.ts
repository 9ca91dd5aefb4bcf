import type { Db } from 'mongodb';
import { type StoredPointer, VIEWS } from './layout.ts';

/** How long a cached pointer is trusted, in milliseconds; every process must follow a switch within a second. */
const CACHE_MS = 400;

/** Which generation each view is read from, cached briefly so that a read is one round trip. */
export class LiveGenerations {
  readonly #cached = new Map<string, { readonly generation: number; readonly until: number }>();
  readonly #now: () => number;

  /** @param now a monotonic clock in milliseconds; default: the process's own */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** The live generation, possibly from the cache; null if there is none. */
  async recent(db: Db, view: string): Promise<number | null> {
    const cached = this.#cached.get(view);
    if (cached !== undefined && this.#now() < cached.until) return cached.generation;
    return this.current(db, view);
  }

  /** The live generation as stored now. */
  async current(db: Db, view: string): Promise<number | null> {
    const pointer = await db.collection<StoredPointer>(VIEWS).findOne({ _id: view });
    this.#remember(view, pointer?.generation);
    return pointer?.generation ?? null;
  }

  /** Makes a generation live. */
  async set(db: Db, view: string, generation: number): Promise<void> {
    await db
      .collection<StoredPointer>(VIEWS)
      .updateOne({ _id: view }, { $set: { generation } }, { upsert: true });
    this.#remember(view, generation);
  }

  /** Leaves the view without a live generation. */
  async unset(db: Db, view: string): Promise<void> {
    await db.collection<StoredPointer>(VIEWS).deleteOne({ _id: view });
    this.#remember(view, undefined);
  }

  #remember(view: string, generation: number | undefined): void {
    if (generation === undefined) this.#cached.delete(view);
    else this.#cached.set(view, { generation, until: this.#now() + CACHE_MS });
  }
}
