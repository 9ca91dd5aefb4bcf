import { toIso } from '../../domain/clock.ts';
import {
  QUOTA_WINDOW,
  quotaCounter,
  quotasOf,
  type CountQuota,
  type RateQuota,
} from '../../domain/namespaces/quotas.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import type { ApiDependencies, ApiSettings } from '../dependencies.ts';
import { HttpError } from '../errors.ts';

export interface QuotaParts extends Pick<ApiDependencies, 'coordination' | 'clock' | 'telemetry'> {
  readonly settings: Pick<ApiSettings, 'quotas'>;
}

/**
 * Counts bytes of payloads of a namespace in this minute, over all processes. While the coordination store is
 * unavailable, nothing is counted.
 * @throws HttpError 429 where they would exceed its quota
 */
export async function countPayload(
  parts: QuotaParts,
  namespace: string,
  payload: unknown,
): Promise<void> {
  const limit = quotasOf(parts.settings.quotas, namespace).payload_bytes_per_minute;
  if (limit === undefined || payload === undefined) return;
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  const quota = 'payload_bytes_per_minute';
  const name = quotaCounter(quota, namespace);
  const counted = await unlessAway(parts, (store) => store.count(name, bytes, QUOTA_WINDOW));
  if (counted !== null && counted.sum > limit) throw usedUp(parts, quota, limit, counted.remaining);
}

/**
 * Checks that a namespace may start more runs in this minute. They are counted when they start.
 * @throws HttpError 429 where its quota is used up
 */
export async function requireRunRate(parts: QuotaParts, namespace: string): Promise<void> {
  const limit = quotasOf(parts.settings.quotas, namespace).runs_per_minute;
  if (limit === undefined) return;
  const name = quotaCounter('runs_per_minute', namespace);
  const counted = await unlessAway(parts, (store) => store.readCount(name, QUOTA_WINDOW));
  const { sum, remaining } = counted ?? { sum: 0, remaining: QUOTA_WINDOW };
  if (sum >= limit) throw usedUp(parts, 'runs_per_minute', limit, remaining);
}

/** What runs of a namespace wait for whose quota of this minute is used up; null where it is not. @throws CoordinationError */
export async function rateWait(
  { coordination, settings }: Pick<QuotaParts, 'coordination' | 'settings'>,
  namespace: string,
): Promise<string | null> {
  const limit = quotasOf(settings.quotas, namespace).runs_per_minute;
  if (limit === undefined) return null;
  const counted = await coordination.readCount(
    quotaCounter('runs_per_minute', namespace),
    QUOTA_WINDOW,
  );
  if (counted === null || counted.sum < limit) return null;
  return `the next minute: its namespace has started ${limit} of ${limit} runs in this one (quota runs_per_minute)`;
}

/** null while the coordination store is unavailable. */
async function unlessAway<T>(
  { coordination, telemetry }: QuotaParts,
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

/** @param remaining milliseconds until it frees */
function usedUp(
  { clock, telemetry }: QuotaParts,
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

/** What failures are reported as. */
const NOT_COUNTED = 'could not count for a quota';

/** The last creation of each namespace and quota in this process: the next one waits for it. */
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

/** What a command creates. */
interface Creation {
  readonly namespace: string;
  readonly quota: CountQuota;
  /** An earlier attempt of the same command has created it. */
  readonly isThere: boolean;
}

/**
 * Creates something of which a namespace has a limited number. In one process, creations of a namespace with such a quota
 * go one after another, so that they cannot pass the limit together. Several processes may pass it by one each.
 * @param present how many there are, with all of this process's earlier creations
 * @throws HttpError 409 where there are as many as it may have; errors of `create`
 */
export async function createWithinQuota<T>(
  { settings, telemetry }: Pick<QuotaParts, 'settings' | 'telemetry'>,
  { namespace, quota, isThere }: Creation,
  present: () => Promise<number>,
  create: () => Promise<T>,
): Promise<T> {
  const limit = quotasOf(settings.quotas, namespace)[quota];
  if (limit === undefined || isThere) return create();
  return inTurn(settings, `${quota} ${namespace}`, async () => {
    const used = await present();
    if (used < limit) return create();
    telemetry.count('limit_refusals_total', { limit: quota });
    const verb = quota === 'tasks' ? 'cancel one' : 'remove one';
    const message = `the quota ${quota} of the namespace is used up: ${used} of ${limit}; ${verb} first`;
    throw new HttpError('conflict', message, { quota, limit, used, frees_at: null });
  });
}

async function inTurn<T>(owner: object, name: string, work: () => Promise<T>): Promise<T> {
  const queue = turns.get(owner) ?? new Map<string, Promise<unknown>>();
  turns.set(owner, queue);
  // A failure of the previous creation concerns only its own caller.
  const mine = (queue.get(name) ?? Promise.resolve()).then(work, work);
  queue.set(name, mine);
  try {
    return await mine;
  } finally {
    if (queue.get(name) === mine) queue.delete(name);
  }
}
