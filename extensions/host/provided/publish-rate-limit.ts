import { toIso, type Clock } from '../../../domain/clock.ts';
import { ExtensionError } from '../../contract.ts';
import type { Extension } from '../extension.ts';
import type { HostSettings } from '../ports.ts';

/**
 * A rejection takes this long, in milliseconds, so that a publishing loop does not block the
 * process.
 */
const REJECTION_DELAY_MS = 100;

/**
 * Limits the events that an extension publishes on its own to the rate limit of agents. Built-in
 * extensions publish for requests, which are already counted.
 */
export class PublishRateLimit {
  readonly #extension: Extension;
  readonly #settings: Pick<HostSettings, 'rateLimit' | 'rateLimitWindowSeconds'>;
  readonly #clock: Clock;
  readonly #onExceeded: (error: Error) => void;
  #window = Number.NaN;
  #count = 0;

  /** @param onExceeded called once per window in which an event was rejected */
  constructor(
    extension: Extension,
    settings: Pick<HostSettings, 'rateLimit' | 'rateLimitWindowSeconds'>,
    clock: Clock,
    onExceeded: (error: Error) => void,
  ) {
    this.#extension = extension;
    this.#settings = settings;
    this.#clock = clock;
    this.#onExceeded = onExceeded;
  }

  /** @throws ExtensionError `rate_limit_exceeded` over the limit */
  async acquire(): Promise<void> {
    const { rateLimit: limit, rateLimitWindowSeconds: seconds } = this.#settings;
    if (limit === 0 || this.#extension.source === 'builtin') return;
    const window = Math.floor(this.#clock.now() / (seconds * 1000));
    if (window !== this.#window) {
      this.#window = window;
      this.#count = 0;
    }
    this.#count += 1;
    if (this.#count <= limit) return;
    const message = `an extension may publish at most ${limit} events in ${seconds} s`;
    if (this.#count === limit + 1) this.#onExceeded(new Error(message));
    await this.#clock.sleep(REJECTION_DELAY_MS);
    const reset_at = toIso((window + 1) * seconds * 1000);
    throw new ExtensionError('rate_limit_exceeded', message, {
      limit,
      window: `${seconds}s`,
      reset_at,
    });
  }
}
