import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { BackOff } from './back-off.ts';

/** Does what must be done for a view, however often that takes. */
export class Insistence {
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;
  readonly #projection: string;
  #fault: string | null = null;

  constructor(clock: Clock, telemetry: Telemetry, projection: string) {
    this.#clock = clock;
    this.#telemetry = telemetry;
    this.#projection = projection;
  }

  /** What it failed of last; null once something has worked since. */
  get fault(): string | null {
    return this.#fault;
  }

  /** Tries something until it works; undefined when the signal was aborted before. */
  async on<T>(signal: AbortSignal, action: () => Promise<T>): Promise<T | undefined> {
    const backOff = new BackOff(this.#clock);
    while (!signal.aborted) {
      try {
        const result = await action();
        this.#fault = null;
        return result;
      } catch (error) {
        this.#fault = error instanceof Error ? error.message : String(error);
        const fields = { projection: this.#projection, error: this.#fault };
        this.#telemetry.log.warn('a view can not be managed; it is tried again', fields);
        await backOff.wait(signal);
      }
    }
    return undefined;
  }
}
