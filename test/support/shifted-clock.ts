import { SystemClock } from '../../app/clock.ts';
import type { Cancel, Clock, Instant } from '../../domain/clock.ts';

/** A clock with an offset from another one, which a test can change. */
export class ShiftedClock implements Clock {
  readonly #clock: Clock;
  readonly #passes: boolean;
  #shift: number;

  /**
   * @param clock default: the machine's
   * @param options.shift initial offset in milliseconds; default 0
   * @param options.passes whether offsets also count as monotonic time; default: they are a changed
   * setting
   */
  constructor(
    clock: Clock = new SystemClock(),
    options: { readonly shift?: number; readonly passes?: boolean } = {},
  ) {
    this.#clock = clock;
    this.#shift = options.shift ?? 0;
    this.#passes = options.passes ?? false;
  }

  /** Moves the time by so many milliseconds. Active timers keep their real duration. */
  shift(milliseconds: number): void {
    this.#shift += milliseconds;
  }

  now(): Instant {
    return this.#clock.now() + this.#shift;
  }

  at(instant: Instant, callback: () => void, options?: { readonly background?: boolean }): Cancel {
    return this.#clock.at(instant - this.#shift, callback, options);
  }

  steady(): number {
    return this.#clock.steady() + (this.#passes ? this.#shift : 0);
  }

  after(
    milliseconds: number,
    callback: () => void,
    options?: { readonly background?: boolean },
  ): Cancel {
    return this.#clock.after(milliseconds, callback, options);
  }

  sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return this.#clock.sleep(milliseconds, signal);
  }
}
