import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { errorMessage } from '../error-message.ts';
import { BackOff } from './back-off.ts';

/** Retries the management of one view until it succeeds, and remembers the last error. */
export class RetryLoop {
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #projection: string;
  #error: string | null = null;

  constructor(clock: Clock, telemetry: Telemetry, projection: string) {
    this.#clock = clock;
    this.#telemetry = telemetry;
    this.#projection = projection;
  }

  /** The last error; null once an action has succeeded since. */
  get error(): string | null {
    return this.#error;
  }

  /** Retries an action until it succeeds; undefined when the signal was aborted first. */
  async run<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T | undefined> {
    const backOff = new BackOff(this.#clock);
    while (!signal.aborted) {
      try {
        const result = await action();
        this.#error = null;
        return result;
      } catch (error) {
        this.#error = errorMessage(error);
        const fields = { projection: this.#projection, error: this.#error };
        this.#telemetry.log.warn('could not manage a view; retrying', fields);
        await backOff.wait(signal);
      }
    }
    return undefined;
  }
}

/**
 * Repeats an action until the signal is aborted: it should last that long, and is started again when it ends early.
 * @param failure the log message for an error
 */
export async function keepRunning(
  parts: { readonly clock: Clock; readonly telemetry: Telemetry; readonly failure: string },
  signal: AbortSignal,
  action: () => Promise<void>,
): Promise<void> {
  const { clock, telemetry, failure } = parts;
  const backOff = new BackOff(clock);
  while (!signal.aborted) {
    try {
      await action();
      backOff.reset();
    } catch (error) {
      if (!signal.aborted) telemetry.log.warn(failure, { error: errorMessage(error) });
    }
    await backOff.wait(signal);
  }
}
