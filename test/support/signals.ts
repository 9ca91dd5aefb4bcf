/** The longest wait of a test for something real, in milliseconds. */
const DEFAULT_LIMIT_MS = 30_000;

export interface WaitOptions {
  /** The longest wait, in real milliseconds; 30,000 by default. */
  readonly limitMs?: number;
  /** The expected condition, for the error: "the run to end". */
  readonly what?: string;
  /** The pause between two checks, in milliseconds; by default it grows with the wait. */
  readonly everyMs?: number;
}

/** Rejection of a wait after its timeout; the message names the expected condition. */
export class WaitTimeoutError extends Error {
  override readonly name = 'WaitTimeoutError';
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

  /** The first matching value, already sent or future. Rejects with {@link WaitTimeoutError}. */
  wait(predicate: (value: T) => boolean = () => true, options: WaitOptions = {}): Promise<T> {
    const past = this.#values.findIndex(predicate);
    return past === -1 ? this.next(predicate, options) : Promise.resolve(this.#values[past] as T);
  }

  /** The first matching value sent from now on. Rejects with {@link WaitTimeoutError}. */
  next(predicate: (value: T) => boolean = () => true, options: WaitOptions = {}): Promise<T> {
    return new Promise((resolve, reject) => {
      const limitMs = options.limitMs ?? DEFAULT_LIMIT_MS;
      const giveUp = async (): Promise<void> => {
        await handleArrivals();
        if (!this.#waiters.delete(waiter)) return;
        const what = options.what ?? `a matching value of ${this.#name}`;
        const seen = `${String(this.#values.length)} values were sent`;
        reject(new WaitTimeoutError(`Waited ${String(limitMs)} ms in vain for ${what}; ${seen}`));
      };
      const timer = setTimeout(() => void giveUp(), limitMs);
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
 * {@link Signal} or a virtual clock where possible. Rejects with {@link WaitTimeoutError}, with the
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
  const begun = performance.now();
  let isLast = false;
  for (;;) {
    let failure: unknown;
    try {
      const value = await look();
      if (value !== undefined && value !== null) return value;
    } catch (error) {
      failure = error;
    }
    const waited = performance.now() - begun;
    if (waited >= limitMs && !isLast) {
      isLast = true;
      await handleArrivals();
      continue;
    }
    if (isLast) {
      const last = failure instanceof Error ? `: ${failure.message}` : '';
      const what = options.what ?? String(look);
      throw new WaitTimeoutError(`Waited ${String(limitMs)} ms in vain for ${what}${last}`, {
        cause: failure,
      });
    }
    await pause(waited, options.everyMs);
  }
}

/**
 * Lets the process handle what has arrived. After a stall, Node runs expired timers before it reads its sockets, so a
 * limit passes although the expected data are already there.
 */
async function handleArrivals(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  await new Promise<void>((resolve) => setTimeout(resolve, 1));
  await new Promise<void>((resolve) => setImmediate(resolve));
}

/** How long checks follow each other without a pause, in milliseconds. */
const NO_PAUSE_MS = 5;
/** The longest pause between two checks, in milliseconds. */
const MAX_PAUSE_MS = 100;

/**
 * At first a turn of the event loop, then a tenth of the wait so far. So a wait becomes longer by a
 * tenth at most, and rarely disturbs a process that needs the processor.
 */
function pause(waited: number, everyMs = Math.min(MAX_PAUSE_MS, waited / 10)): Promise<void> {
  return new Promise((resolve) => {
    if (waited < NO_PAUSE_MS) setImmediate(resolve);
    else setTimeout(resolve, everyMs);
  });
}
