import { performance } from 'node:perf_hooks';
import type { Db } from 'mongodb';
import { type StoredPointer, VIEWS } from './layout.ts';

/** How long a pointer is believed, in milliseconds: every process must follow a switch within a second. */
const BELIEVED_FOR = 400;

/** Which generation each view is read from, remembered for a moment, so that a read is one round trip. */
export class LiveGenerations {
  readonly #believed = new Map<string, { readonly generation: number; readonly until: number }>();
  readonly #now: () => number;

  /** @param now milliseconds that only grow; default: the process's own */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** As it was a moment ago; null where there is none. */
  async recent(db: Db, view: string): Promise<number | null> {
    const believed = this.#believed.get(view);
    if (believed !== undefined && this.#now() < believed.until) return believed.generation;
    return this.current(db, view);
  }

  /** As it is. */
  async current(db: Db, view: string): Promise<number | null> {
    const pointer = await db.collection<StoredPointer>(VIEWS).findOne({ _id: view });
    this.#believe(view, pointer?.generation);
    return pointer?.generation ?? null;
  }

  /** Points to another generation. */
  async set(db: Db, view: string, generation: number): Promise<void> {
    await db
      .collection<StoredPointer>(VIEWS)
      .updateOne({ _id: view }, { $set: { generation } }, { upsert: true });
    this.#believe(view, generation);
  }

  /** Points to none. */
  async unset(db: Db, view: string): Promise<void> {
    await db.collection<StoredPointer>(VIEWS).deleteOne({ _id: view });
    this.#believe(view, undefined);
  }

  #believe(view: string, generation: number | undefined): void {
    if (generation === undefined) this.#believed.delete(view);
    else this.#believed.set(view, { generation, until: this.#now() + BELIEVED_FOR });
  }
}
