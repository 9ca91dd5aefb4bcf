import type { Clock } from '../../domain/clock.ts';

const FIRST_MS = 50;
const LONGEST_MS = 5_000;

/** How long to wait before something that failed is tried again: longer each time, up to five seconds. */
export class BackOff {
  readonly #clock: Clock;
  #delay = FIRST_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** It worked: the next wait is the shortest again. */
  reset(): void {
    this.#delay = FIRST_MS;
  }

  /** Resolves when it is time, or when the signal is aborted. */
  wait(signal: AbortSignal): Promise<void> {
    const delay = this.#delay;
    this.#delay = Math.min(LONGEST_MS, this.#delay * 2);
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = (): void => {
        cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const cancel = this.#clock.after(delay, end);
      signal.addEventListener('abort', end, { once: true });
    });
  }
}
