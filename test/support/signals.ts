/** The longest wait of a test for something real, in milliseconds. */
const DEFAULT_LIMIT_MS = 30_000;

export interface WaitOptions {
  /** The longest wait, in real milliseconds; 5,000 by default. */
  readonly limitMs?: number;
  /** The expected condition, for the error: "the run to end". */
  readonly what?: string;
}

/** Rejection of a wait after its timeout; the message names the expected condition. */
export class WaitedInVain extends Error {
  override readonly name = 'WaitedInVain';
}

interface Waiter<T> {
  readonly predicate: (value: T) => boolean;
  readonly settle: (value: T) => void;
}

/** A series of values that a test can wait for, such as the calls of a callback. */
export class Signal<T = void> {
  readonly #name: string;
  readonly #values: T[] = [];
  readonly #waiters = new Set<Waiter<T>>();

  /** The name for errors. */
  constructor(name = 'the signal') {
    this.#name = name;
  }

  /** Everything sent so far, oldest first. */
  get values(): readonly T[] {
    return this.#values;
  }

  /** Bound, for use as a callback. */
  readonly send = (value: T): void => {
    this.#values.push(value);
    for (const waiter of this.#waiters) {
      if (waiter.predicate(value)) waiter.settle(value);
    }
  };

  /** The first matching value, already sent or future. Rejects with {@link WaitedInVain}. */
  wait(predicate: (value: T) => boolean = () => true, options: WaitOptions = {}): Promise<T> {
    const past = this.#values.findIndex(predicate);
    return past === -1 ? this.next(predicate, options) : Promise.resolve(this.#values[past] as T);
  }

  /** The first matching value sent from now on. Rejects with {@link WaitedInVain}. */
  next(predicate: (value: T) => boolean = () => true, options: WaitOptions = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      const limitMs = options.limitMs ?? DEFAULT_LIMIT_MS;
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter);
        const what = options.what ?? `a fitting value of ${this.#name}`;
        const seen = `${String(this.#values.length)} values were sent`;
        reject(new WaitedInVain(`Waited ${String(limitMs)} ms in vain for ${what}; ${seen}`));
      }, limitMs);
      const waiter: Waiter<T> = {
        predicate,
        settle: (value) => {
          clearTimeout(timer);
          this.#waiters.delete(waiter);
          resolve(value);
        },
      };
      this.#waiters.add(waiter);
    });
  }

  /** Resolves with the first `count` values once that many have been sent. */
  async count(count: number, options: WaitOptions = {}): Promise<readonly T[]> {
    const what = options.what ?? `${String(count)} values of ${this.#name}`;
    if (this.#values.length < count) {
      await this.next(() => this.#values.length >= count, { ...options, what });
    }
    return this.#values.slice(0, count);
  }
}

/** A promise with its resolvers (Node 20 lacks `Promise.withResolvers`). */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** Creates a {@link Deferred}, to hold the tested code at a chosen point. */
export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/**
 * Waits until a check neither throws nor returns false. For conditions caused by real I/O; prefer a
 * {@link Signal} or a virtual clock where possible. Rejects with {@link WaitedInVain}, with the
 * check's last error as its cause and in its message.
 */
export async function eventually(
  check: () => void | boolean | Promise<void | boolean>,
  options: WaitOptions = {},
): Promise<void> {
  await poll(async () => ((await check()) === false ? undefined : true), options);
}

/** Waits until a lookup returns a value (neither undefined nor null), and returns it. */
export function found<T>(
  look: () => T | undefined | null | Promise<T | undefined | null>,
  options: WaitOptions = {},
): Promise<T> {
  return poll(look, options);
}

async function poll<T>(
  look: () => T | undefined | null | Promise<T | undefined | null>,
  options: WaitOptions,
): Promise<T> {
  const limitMs = options.limitMs ?? DEFAULT_LIMIT_MS;
  const end = performance.now() + limitMs;
  for (let turn = 0; ; turn += 1) {
    let failure: unknown;
    try {
      const value = await look();
      if (value !== undefined && value !== null) return value;
    } catch (error) {
      failure = error;
    }
    if (performance.now() >= end) {
      const last = failure instanceof Error ? `: ${failure.message}` : '';
      const what = options.what ?? String(look);
      throw new WaitedInVain(`Waited ${String(limitMs)} ms in vain for ${what}${last}`, {
        cause: failure,
      });
    }
    await pause(turn);
  }
}

/** A turn of the event loop first, then 1 to 20 ms, so a long wait does not keep a core busy. */
function pause(turn: number): Promise<void> {
  return new Promise((resolve) => {
    if (turn < 20) setImmediate(resolve);
    else setTimeout(resolve, Math.min(20, turn - 19));
  });
}
