import type { JsonObject } from '../domain/json.ts';

/**
 * The coordination port: what processes tell each other about the present. All of it is disposable
 * and never trusted with a fact; losing it costs work, not truth. Two adapters (`stores/sqlite`,
 * `stores/mongodb`), one contract suite (`test/contracts/coordination.ts`).
 *
 * Time is the store's own, so that the processes' clocks need not agree.
 * Where it is put back, what was written at a time that lies ahead by more than a second has ended: its end might lie
 * hours ahead. In a store with several clocks at once (a sharded cluster of MongoDB) that is by more than what was
 * written lasts.
 */
export interface Coordination {
  /**
   * Takes or renews a lease. The same owner renews, keeping the fence; another gets it once it has run out
   * or was released, with a larger fence than any before.
   * @param ttl milliseconds
   * @returns null while somebody else has it
   */
  acquire(name: string, owner: string, ttl: number): Promise<Lease | null>;

  /** Gives a lease back; nothing when it is not the owner's. */
  release(name: string, owner: string): Promise<void>;

  /** Says that a process is alive for another `ttl` milliseconds, and something about it. */
  heartbeat(id: string, about: JsonObject, ttl: number): Promise<void>;

  /** Ends a life before its time. */
  forget(id: string): Promise<void>;

  /** Who is alive, ordered by id. */
  alive(): Promise<readonly LiveMember[]>;

  /**
   * Adds to a shared counter that begins anew each window.
   * @param window milliseconds; windows begin at multiples of it
   * @returns the sum after adding, and how many milliseconds the window still lasts
   */
  count(
    name: string,
    by: number,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number }>;

  /**
   * What a shared counter has come to in its present window, and how many milliseconds that still lasts; null where
   * nothing was added in it. Writes nothing, and so costs nobody anything whatever is asked for.
   */
  counted(
    name: string,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number } | null>;

  /** A remembered position or other small text; null when there is none. */
  recall(name: string): Promise<string | null>;

  /** Remembers it. A smaller fence than one seen before for this name is refused: false. */
  remember(name: string, value: string, fence: number): Promise<boolean>;

  /** Whether it answers; resolves or throws CoordinationError, within two seconds. */
  ping(): Promise<void>;

  close(): Promise<void>;
}

export interface Lease {
  /** Grows with each change of owner. */
  readonly fence: number;
  /** Milliseconds left. */
  readonly remaining: number;
}

export interface LiveMember {
  readonly id: string;
  readonly about: JsonObject;
  /** Milliseconds left until it counts as gone. */
  readonly remaining: number;
}

/** The coordination store can't be reached. */
export class CoordinationError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CoordinationError';
  }
}
