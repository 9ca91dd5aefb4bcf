import { toIso, type Clock } from '../../../domain/clock.ts';
import { ExtensionError } from '../../contract.ts';
import type { Extension } from '../extension.ts';
import type { HostSettings } from '../ports.ts';

/** A rejection takes this long, in milliseconds, so that a publishing loop does not block the process. */
const REJECTION_DELAY_MS = 100;

/**
 * Limits the events that an extension publishes on its own to the rate limit of agents. Built-in extensions publish
 * for requests, which are already counted.
 * @param onExceeded called once per window in which an event was rejected
 * @returns called before each event; throws ExtensionError `rate_limit_exceeded` over the limit
 */
export function publishRateLimit(
  { source }: Extension,
  settings: Pick<HostSettings, 'rateLimit' | 'rateLimitWindowSeconds'>,
  clock: Clock,
  onExceeded: (error: Error) => void,
): () => Promise<void> {
  const { rateLimit: limit, rateLimitWindowSeconds: seconds } = settings;
  let currentWindow = Number.NaN;
  let count = 0;
  return async () => {
    if (limit === 0 || source === 'builtin') return;
    const window = Math.floor(clock.now() / (seconds * 1000));
    if (window !== currentWindow) count = 0;
    currentWindow = window;
    count += 1;
    if (count <= limit) return;
    const message = `an extension may publish at most ${limit} events in ${seconds} s`;
    if (count === limit + 1) onExceeded(new Error(message));
    await clock.sleep(REJECTION_DELAY_MS);
    const reset_at = toIso((window + 1) * seconds * 1000);
    const details = { limit, window: `${seconds}s`, reset_at };
    throw new ExtensionError('rate_limit_exceeded', message, details);
  };
}
