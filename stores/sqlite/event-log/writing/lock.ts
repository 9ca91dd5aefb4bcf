import {
  blockFor,
  execute,
  faultOf,
  prepareForArrays,
  type Database,
  type Statement,
} from '../../database.ts';

/**
 * The log's write lock, shared fairly between processes. SQLite's own waiting backs off further and
 * further, so that whoever came last gets in first and one process can starve for seconds. Here those who
 * have waited longest ask most often, and whoever has had the lock while others wanted it leaves them a moment in
 * which it is free.
 */
export class WriteLock {
  readonly #begin: Statement;
  readonly #version: Statement;
  readonly #timeout: number;
  #seenVersion: unknown;
  #contended = false;
  /** When this connection let go of the lock, by the monotonic clock. */
  #released = 0;

  /** @param timeout milliseconds after which waiting is given up */
  constructor(database: Database, timeout: number) {
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#version = prepareForArrays(database, 'PRAGMA data_version');
    this.#timeout = timeout;
  }

  /**
   * Begins a write transaction. Blocks the thread.
   *
   * @returns milliseconds waited, and whether another connection has written since the last time
   * @throws the driver's busy error when another process has kept the lock all the time
   */
  acquire(): { readonly waited: number; readonly othersWrote: boolean } {
    const since = performance.now();
    if (this.#contended) {
      // Whoever comes later than that has left them the moment already.
      const left = this.#released + 0.2 + Math.random() * 0.6 - since;
      if (left > 0) blockFor(left);
    }
    let waited = 0;
    for (;;) {
      try {
        execute(this.#begin);
        break;
      } catch (error) {
        if (faultOf(error) !== 'busy') throw error;
        waited = performance.now() - since;
        if (waited > this.#timeout) throw error;
        blockFor(pause(waited));
      }
    }
    const version = this.#version.get()?.[0];
    const othersWrote = version !== this.#seenVersion;
    this.#contended = othersWrote && this.#seenVersion !== undefined;
    this.#seenVersion = version;
    return { waited, othersWrote };
  }

  /** The transaction has ended. */
  released(): void {
    this.#released = performance.now();
  }

  /** Makes the next `acquire` say that others wrote: what was known is not to be trusted. */
  forget(): void {
    this.#seenVersion = undefined;
  }
}

/** Milliseconds until the next try, after having waited so long. Random, or two would keep in step. */
function pause(waited: number): number {
  if (waited < 2) return 0.2 + Math.random() * 0.3;
  if (waited < 10) return 0.1 + Math.random() * 0.2;
  return 0.03 + Math.random() * 0.05;
}
