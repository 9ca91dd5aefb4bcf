import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { errorMessage } from '../error-message.ts';
import type { Projection } from '../read-model.ts';
import { BackOff } from './back-off.ts';

/**
 * Retries an action until it succeeds, with growing pauses; undefined when the signal was aborted first.
 * @param onError may throw to give up
 */
export async function retry<T>(
  clock: Clock,
  signal: AbortSignal,
  action: () => Promise<T>,
  onError: (error: unknown) => void,
): Promise<T | undefined> {
  const backOff = new BackOff(clock);
  while (!signal.aborted) {
    try {
      return await action();
    } catch (error) {
      onError(error);
      await backOff.wait(signal);
    }
  }
  return undefined;
}

interface LoopOptions {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly projection: Projection;
}

/** Retries the management of one view, and remembers the last error. */
export class RetryLoop {
  readonly #options: LoopOptions;
  #error: string | null = null;

  constructor(options: LoopOptions) {
    this.#options = options;
  }

  /** The last error; null once an action has succeeded since. */
  get error(): string | null {
    return this.#error;
  }

  /** Retries an action until it succeeds; undefined when the signal was aborted first. */
  async run<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T | undefined> {
    const { clock, telemetry, projection } = this.#options;
    const failure = `could not manage the view ${projection.name}; retrying`;
    const result = await retry(clock, signal, action, (error) => {
      this.#error = errorMessage(error);
      telemetry.failures.failed(failure, error);
    });
    if (!signal.aborted) {
      this.#error = null;
      telemetry.failures.worked(failure);
    }
    return result;
  }
}

/**
 * Repeats an action until the signal is aborted. The action should last that long; if it ends early, it is started
 * again.
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
      telemetry.failures.worked(failure);
    } catch (error) {
      if (!signal.aborted) telemetry.failures.failed(failure, error);
    }
    await backOff.wait(signal);
  }
}
