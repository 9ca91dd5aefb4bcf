import type { Clock } from '../../domain/clock.ts';

const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 5_000;

/** The pause before a failed action is retried. It doubles with each failure, up to five seconds. */
export class BackOff {
  readonly #clock: Clock;
  #delay = FIRST_DELAY_MS;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  reset(): void {
    this.#delay = FIRST_DELAY_MS;
  }

  /** Resolves after the pause, or when the signal is aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    const delay = this.#delay;
    this.#delay = Math.min(MAX_DELAY_MS, this.#delay * 2);
    await this.#clock.sleep(delay, signal).catch(() => {});
  }
}
