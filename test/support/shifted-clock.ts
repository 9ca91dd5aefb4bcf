import { SystemClock } from '../../app/clock.ts';
import type { Cancel, Clock, Instant } from '../../domain/clock.ts';

/** Another clock whose time was set to something else, and is set again as a test says. */
export class ShiftedClock implements Clock {
  readonly #clock: Clock;
  readonly #passes: boolean;
  #shift: number;

  /**
   * @param clock default: the machine's
   * @param options.shift milliseconds that it is ahead by from the beginning; default 0
   * @param options.passes what it is moved by has also passed by the monotonic clock; default: somebody has set it
   */
  constructor(
    clock: Clock = new SystemClock(),
    options: { readonly shift?: number; readonly passes?: boolean } = {},
  ) {
    this.#clock = clock;
    this.#shift = options.shift ?? 0;
    this.#passes = options.passes ?? false;
  }

  /** Moves the time by so many milliseconds. Timers that are set keep their real distance. */
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
