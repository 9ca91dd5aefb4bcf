import type { Cancel, Clock, Instant } from '../../domain/clock.ts';

interface Timer {
  instant: Instant;
  /** Whether it was set for a duration; see {@link VirtualClock.setTo}. */
  readonly isLength: boolean;
  /** Order of creation: of two timers for one instant, the older fires first. */
  readonly sequence: number;
  readonly callback: () => void;
  pending: boolean;
}

/** Runs everything that is ready: microtasks, immediates, and their consequences. */
export async function settle(rounds = 4): Promise<void> {
  for (let round = 0; round < rounds; round += 1) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

export interface VirtualClockOptions {
  /**
   * Awaited before the first and after every timer that {@link VirtualClock.advanceTo} fires. The
   * default suits code that works in memory. If a reaction needs real I/O, pass one that waits
   * until the tested code is idle.
   */
  readonly settle?: () => Promise<void>;
}

/**
 * Time that moves only on request. A timer for a past instant fires by itself on a later turn of
 * the event loop, as the port promises; all others wait for {@link advanceTo}.
 */
export class VirtualClock implements Clock {
  #now: Instant;
  /** By how much {@link setTo} has set it. */
  #setBy = 0;
  #sequence = 0;
  #pending = 0;
  /** Ordered by instant, then by sequence. Cancelled ones stay until they come to the front. */
  readonly #timers: Timer[] = [];
  readonly #settle: () => Promise<void>;
  #advancing: Promise<void> = Promise.resolve();

  /** Starts at an instant: milliseconds, or a timestamp with `Z` or an offset. */
  constructor(start: Instant | string = '2026-01-01T00:00:00.000Z', options?: VirtualClockOptions) {
    this.#now = toInstant(start);
    this.#settle = options?.settle ?? settle;
  }

  now(): Instant {
    return this.#now;
  }

  /** The number of pending timers, including those of `sleep`. */
  get pending(): number {
    return this.#pending;
  }

  /** The instant of the next timer; undefined for none. */
  get next(): Instant | undefined {
    this.#dropCancelled();
    return this.#timers[0]?.instant;
  }

  at(instant: Instant, callback: () => void): Cancel {
    return this.#set(instant, callback, false);
  }

  #set(instant: Instant, callback: () => void, isLength: boolean): Cancel {
    if (Number.isNaN(instant)) {
      throw new RangeError('A timer needs an instant, not NaN');
    }
    const sequence = this.#sequence;
    const timer: Timer = { instant, isLength, sequence, callback, pending: true };
    this.#sequence += 1;
    this.#pending += 1;
    this.#timers.splice(this.#placeOf(timer), 0, timer);
    if (instant <= this.#now) {
      setImmediate(() => this.#fire(timer));
    }
    return () => {
      if (timer.pending) {
        timer.pending = false;
        this.#pending -= 1;
      }
    };
  }

  steady(): number {
    return this.#now - this.#setBy;
  }

  after(milliseconds: number, callback: () => void): Cancel {
    return this.#set(this.#now + milliseconds, callback, true);
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        cancel();
        reject(signal?.reason as Error);
      };
      const wake = (): void => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const cancel = this.after(milliseconds, wake);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  /**
   * Moves to an instant and fires, in order, each timer due on the way, including new ones.
   * Asynchronous reactions run between them. Rejects with a callback's error, and with a RangeError
   * for a past instant.
   */
  advanceTo(target: Instant | string): Promise<void> {
    const instant = toInstant(target);
    const run = this.#advancing.then(() => this.#walkTo(instant));
    this.#advancing = run.catch(() => undefined);
    return run;
  }

  /** {@link advanceTo} the instant after a number of milliseconds. */
  advance(milliseconds: number): Promise<void> {
    const run = this.#advancing.then(() => this.#walkTo(this.#now + milliseconds));
    this.#advancing = run.catch(() => undefined);
    return run;
  }

  /**
   * Sets the time without passing the time in between, forwards or backwards, like a machine that
   * slept or whose clock was corrected. Timers that are due now fire, late, on a later turn.
   */
  jumpTo(target: Instant | string): void {
    this.#now = toInstant(target);
    for (const timer of this.#timers) {
      if (timer.instant > this.#now) break;
      setImmediate(() => this.#fire(timer));
    }
  }

  /**
   * Sets the time like a machine's clock: like {@link jumpTo}, but timers for a duration keep their
   * remaining time.
   */
  setTo(target: Instant | string): void {
    const moved = toInstant(target) - this.#now;
    this.#setBy += moved;
    for (const timer of this.#timers) if (timer.isLength) timer.instant += moved;
    this.#timers.sort((a, b) => a.instant - b.instant || a.sequence - b.sequence);
    this.jumpTo(target);
  }

  async #walkTo(target: Instant): Promise<void> {
    if (target < this.#now) {
      throw new RangeError(
        `Time does not run backwards: ${iso(target)} lies before ${iso(this.#now)}; use jumpTo`,
      );
    }
    await this.#settle();
    for (;;) {
      this.#dropCancelled();
      const timer = this.#timers[0];
      if (timer === undefined || timer.instant > target) break;
      this.#now = Math.max(this.#now, timer.instant);
      this.#fire(timer);
      await this.#settle();
    }
    this.#now = Math.max(this.#now, target);
    await this.#settle();
  }

  /**
   * Does nothing for a timer that has fired or been cancelled, or is in the future after a jump
   * back.
   */
  #fire(timer: Timer): void {
    if (!timer.pending || timer.instant > this.#now) return;
    timer.pending = false;
    this.#pending -= 1;
    timer.callback();
  }

  #dropCancelled(): void {
    let done = 0;
    while (this.#timers[done]?.pending === false) done += 1;
    this.#timers.splice(0, done);
  }

  /** The index for a new timer: after all that fire before it (binary search). */
  #placeOf(timer: Timer): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#timers[middle];
      if (other !== undefined && other.instant <= timer.instant) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

function toInstant(value: Instant | string): Instant {
  const instant = typeof value === 'number' ? value : Date.parse(value);
  if (!Number.isFinite(instant)) {
    throw new RangeError(`Not an instant: ${String(value)}`);
  }
  return instant;
}

function iso(instant: Instant): string {
  return new Date(instant).toISOString();
}
