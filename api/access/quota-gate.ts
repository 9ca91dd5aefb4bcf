import { toIso } from '../../domain/clock.ts';
import { QUOTA_WINDOW, quotaCounter } from '../../domain/namespaces/quotas.ts';
import { type RateQuota } from '../../domain/namespaces/quota-names.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { HttpError } from '../errors.ts';

type Parts = Pick<ApiDependencies, 'coordination' | 'clock' | 'telemetry' | 'quotas'>;

/**
 * Counts the bytes of a namespace's payloads in this minute, over all processes. While the coordination store is
 * unavailable, nothing is counted.
 * @throws HttpError 429 if they exceed its quota
 */
export async function countPayload(
  parts: Parts,
  namespace: string,
  payload: unknown,
): Promise<void> {
  const { payload_bytes_per_minute: limit } = await parts.quotas.of(namespace);
  if (limit === undefined || payload === undefined) return;
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  const quota = 'payload_bytes_per_minute';
  const name = quotaCounter(quota, namespace);
  const counted = await nullIfUnavailable(parts, (store) => store.count(name, bytes, QUOTA_WINDOW));
  if (counted !== null && counted.sum > limit) throw usedUp(parts, quota, limit, counted.remaining);
}

/**
 * Checks that a namespace may start more runs in this minute. They are counted when they start.
 * @throws HttpError 429 if its quota is used up
 */
export async function requireRunRate(parts: Parts, namespace: string): Promise<void> {
  const { runs_per_minute: limit } = await parts.quotas.of(namespace);
  if (limit === undefined) return;
  const name = quotaCounter('runs_per_minute', namespace);
  const counted = await nullIfUnavailable(parts, (store) => store.readCount(name, QUOTA_WINDOW));
  const { sum, remaining } = counted ?? { sum: 0, remaining: QUOTA_WINDOW };
  if (sum >= limit) throw usedUp(parts, 'runs_per_minute', limit, remaining);
}

/**
 * The condition for which a namespace's runs wait when the quota of this minute is used up; null if it is not.
 * @throws CoordinationError, EventStoreError
 */
export async function rateWait(
  { coordination, quotas }: Pick<Parts, 'coordination' | 'quotas'>,
  namespace: string,
): Promise<string | null> {
  const { runs_per_minute: limit } = await quotas.of(namespace);
  if (limit === undefined) return null;
  const counted = await coordination.readCount(
    quotaCounter('runs_per_minute', namespace),
    QUOTA_WINDOW,
  );
  if (counted === null || counted.sum < limit) return null;
  return `the next minute: its namespace has started ${limit} of ${limit} runs in this one (quota runs_per_minute)`;
}

/** Reads from the coordination store. Returns null while it is unavailable. */
async function nullIfUnavailable<T>(
  { coordination, telemetry }: Parts,
  read: (store: Coordination) => Promise<T>,
): Promise<T | null> {
  try {
    const found = await read(coordination);
    telemetry.failures.worked(NOT_COUNTED);
    return found;
  } catch (error) {
    telemetry.failures.failed(NOT_COUNTED, error);
    return null;
  }
}

/** @param remaining milliseconds until the quota frees */
function usedUp(
  { clock, telemetry }: Parts,
  quota: RateQuota,
  limit: number,
  remaining: number,
): HttpError {
  telemetry.count('limit_refusals_total', { limit: quota });
  const reset_at = toIso(clock.now() + remaining);
  const message = `the quota ${quota} of the namespace is used up: ${limit} a minute; wait until reset_at`;
  const details = { quota, limit, window: `${QUOTA_WINDOW / 1000}s`, reset_at };
  const seconds = Math.max(1, Math.ceil(remaining / 1000));
  return new HttpError('rate_limit_exceeded', message, details, { 'Retry-After': String(seconds) });
}

/** The message that reports a failure. */
const NOT_COUNTED = 'could not count for a quota';
