import type { JsonObject } from '../domain/json.ts';

/**
 * The coordination port: what processes share about the present. It is disposable and holds no facts; losing it costs
 * work, not truth. Two adapters (`stores/sqlite`, `stores/mongodb`), one contract suite (`test/contracts/coordination.ts`).
 *
 * The store's clock counts, so processes need not agree on the time. If that clock is set back, entries written more than
 * a second in the future have expired. In a sharded MongoDB cluster, with several clocks, the tolerance is the entry's
 * own lifetime.
 */
export interface Coordination {
  /**
   * Takes or renews a lease. The owner keeps its fence. After expiry or release another owner gets a larger fence.
   * @param ttl milliseconds
   * @returns null while another owner has it
   */
  acquire(name: string, owner: string, ttl: number): Promise<Lease | null>;

  /** Releases a lease, if the owner has it. */
  release(name: string, owner: string): Promise<void>;

  /** Marks a process as alive for `ttl` milliseconds. */
  heartbeat(id: string, about: JsonObject, ttl: number): Promise<void>;

  /** Removes a process before its heartbeat expires. */
  forget(id: string): Promise<void>;

  /** The live processes, ordered by id. */
  alive(): Promise<readonly LiveMember[]>;

  /**
   * Adds to a shared counter, which restarts with each window.
   * @param window milliseconds; windows begin at multiples of it
   * @returns the new sum, and the milliseconds left in the window
   */
  count(
    name: string,
    by: number,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number }>;

  /** Reads a shared counter without writing; null if nothing was added in this window. */
  readCount(
    name: string,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number } | null>;

  /** A remembered position or other short string; null if there is none. */
  recall(name: string): Promise<string | null>;

  /** Stores a value. @returns false if a larger fence was used for this name before */
  remember(name: string, value: string, fence: number): Promise<boolean>;

  /** Resolves if the store responds within two seconds. @throws CoordinationError */
  ping(): Promise<void>;

  close(): Promise<void>;
}

export interface Lease {
  /** Increases with each change of owner. */
  readonly fence: number;
  /** Milliseconds left. */
  readonly remaining: number;
}

export interface LiveMember {
  readonly id: string;
  readonly about: JsonObject;
  /** Milliseconds until it counts as gone. */
  readonly remaining: number;
}

/** The coordination store is unavailable. */
export class CoordinationError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CoordinationError';
  }
}
