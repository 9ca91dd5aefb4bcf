import {
  blockThread,
  execute,
  faultOf,
  prepareForArrays,
  type Database,
  type Statement,
} from '../../database.ts';

/**
 * The log's write lock, shared fairly between processes. SQLite's own waiting backs off ever further, so a process can
 * starve for seconds. Here the longest waiters retry most often, and a holder with contenders leaves the lock free for a
 * moment.
 */
export class WriteLock {
  readonly #begin: Statement;
  readonly #version: Statement;
  readonly #timeout: number;
  #seenVersion: unknown;
  #contended = false;
  /** When this connection released the lock, by the monotonic clock. */
  #released = 0;

  /** @param timeout milliseconds to wait at most */
  constructor(database: Database, timeout: number) {
    this.#begin = database.prepare('BEGIN IMMEDIATE');
    this.#version = prepareForArrays(database, 'PRAGMA data_version');
    this.#timeout = timeout;
  }

  /**
   * Begins a write transaction. Blocks the thread.
   * @returns milliseconds waited, and whether another connection has written since the last time
   * @throws the driver's busy error after the timeout
   */
  acquire(): { readonly waited: number; readonly othersWrote: boolean } {
    const since = performance.now();
    if (this.#contended) {
      // Leave others a moment, unless it has passed already.
      const left = this.#released + 0.2 + Math.random() * 0.6 - since;
      if (left > 0) blockThread(left);
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
        blockThread(retryPause(waited));
      }
    }
    const version = this.#version.get()?.[0];
    const othersWrote = version !== this.#seenVersion;
    this.#contended = othersWrote && this.#seenVersion !== undefined;
    this.#seenVersion = version;
    return { waited, othersWrote };
  }

  /** Call when the transaction has ended. */
  released(): void {
    this.#released = performance.now();
  }

  /** Makes the next `acquire` report other writers, so that caches are dropped. */
  forget(): void {
    this.#seenVersion = undefined;
  }
}

/** Milliseconds until the next attempt after a wait. Random, so that waiters do not stay in step. */
function retryPause(waited: number): number {
  if (waited < 2) return 0.2 + Math.random() * 0.3;
  if (waited < 10) return 0.1 + Math.random() * 0.2;
  return 0.03 + Math.random() * 0.05;
}
