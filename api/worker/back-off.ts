import { ApiError } from '../client/client-connection.ts';

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 5_000;

/** How long to wait after failures in a row: 50 to 100 ms, doubled each time up to 5 s. */
export class BackOff {
  #failures = 0;

  /** Resets the pause after a success. */
  get isFresh(): boolean {
    return this.#failures === 0;
  }

  /** @returns milliseconds; more if the service asks for it by `Retry-After` */
  next(error?: unknown): number {
    const longest = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(this.#failures, 10));
    this.#failures += 1;
    const drawn = longest * (0.5 + Math.random() / 2);
    const asked = error instanceof ApiError ? (error.retryAfter ?? 0) * 1000 : 0;
    return Math.max(drawn, asked);
  }

  reset(): void {
    this.#failures = 0;
  }
}

/** Resolves after a number of milliseconds, or once the signal aborts. */
export function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, milliseconds);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });
}
