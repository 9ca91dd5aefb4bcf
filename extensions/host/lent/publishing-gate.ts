import { toIso, type Clock } from '../../../domain/clock.ts';
import { ExtensionError } from '../../contract.ts';
import type { Extension } from '../extension.ts';
import type { HostSettings } from '../ports.ts';

/** A refusal takes so long: what publishes without end must not keep everybody waiting. Milliseconds. */
const REFUSED_AFTER = 100;

/**
 * Holds what an extension appends by itself to the limit that each agent's requests have. Those of this service append
 * for requests, which were counted.
 */
export class PublishingGate {
  readonly #extension: Extension;
  readonly #settings: Pick<HostSettings, 'rateLimit' | 'rateLimitWindowSeconds'>;
  readonly #clock: Clock;
  readonly #flooded: (error: Error) => void;
  #window = Number.NaN;
  #passed = 0;

  /** @param flooded told once in each window in which something was refused */
  constructor(
    extension: Extension,
    settings: Pick<HostSettings, 'rateLimit' | 'rateLimitWindowSeconds'>,
    clock: Clock,
    flooded: (error: Error) => void,
  ) {
    this.#extension = extension;
    this.#settings = settings;
    this.#clock = clock;
    this.#flooded = flooded;
  }

  /** @throws ExtensionError `rate_limit_exceeded` over the limit */
  async pass(): Promise<void> {
    const { rateLimit: limit, rateLimitWindowSeconds: seconds } = this.#settings;
    if (limit === 0 || this.#extension.source === 'builtin') return;
    const window = Math.floor(this.#clock.now() / (seconds * 1000));
    if (window !== this.#window) {
      this.#window = window;
      this.#passed = 0;
    }
    this.#passed += 1;
    if (this.#passed <= limit) return;
    const message = `an extension appends at most ${limit} events in ${seconds} s`;
    if (this.#passed === limit + 1) this.#flooded(new Error(message));
    await this.#clock.sleep(REFUSED_AFTER);
    const reset_at = toIso((window + 1) * seconds * 1000);
    throw new ExtensionError('rate_limit_exceeded', message, {
      limit,
      window: `${seconds}s`,
      reset_at,
    });
  }
}
