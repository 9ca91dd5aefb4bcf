import { RefusalError } from '../../domain/errors.ts';
import type { CountQuota } from '../../domain/namespaces/quota-names.ts';
import { streams } from '../../domain/streams.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { exists, namespaceUse, presentCount, type UsedQuota } from './present-counts.ts';
import { countPayload, rateWait } from './quota-gate.ts';

/** What the quotas of namespaces are decided by. */
export type QuotaParts = Pick<
  ApiDependencies,
  'coordination' | 'clock' | 'telemetry' | 'quotas' | 'store' | 'readModel' | 'positions'
>;

/** How a caller makes room, by quota. */
const remedies: Readonly<Record<CountQuota, string>> = {
  tasks: 'cancel one first',
  agents: 'remove one first',
  topics: 'use a topic of earlier events',
  events: 'wait until retention removes old runs, or trim topics',
  artifact_bytes: 'wait until retention removes old runs',
};

/** What a command creates. */
interface Creation {
  readonly namespace: string;
  readonly quota: CountQuota;
  /** Whether it exists already, by an earlier attempt of the same command or by another one. */
  readonly isThere: () => Promise<boolean>;
}

/** The last creation of each namespace and quota in this process: the next one waits for it. */
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

/**
 * Creates something of which a namespace has a limited number. In one process, creations of a namespace with such a quota
 * go one after another, so that they cannot pass the limit together. Several processes may pass it by one each.
 * @throws RefusalError `STATE_CONFLICT` where there are as many as it may have; errors of `create`
 */
export async function createWithinQuota<T>(
  parts: QuotaParts,
  { namespace, quota, isThere }: Creation,
  create: () => Promise<T>,
): Promise<T> {
  if ((await parts.quotas.of(namespace))[quota] === undefined) return create();
  return inTurn(parts.quotas, `${quota} ${namespace}`, async () => {
    // Again, as it may have changed while others had their turn.
    const { [quota]: limit } = await parts.quotas.of(namespace);
    const used = await presentCount(parts, namespace, quota);
    const isFull = limit !== undefined && used >= limit;
    if (isFull && !(await isThere())) throw usedUp(parts, quota, limit, used);
    return create();
  });
}

/**
 * Publishes an event if the quotas of its namespace allow it: for topics, events and payload bytes.
 * @throws HttpError 429; RefusalError `STATE_CONFLICT`; errors of `publish`
 */
export async function publishWithinQuotas<T>(
  parts: QuotaParts,
  event: { readonly namespace: string; readonly topic: string; readonly payload: unknown },
  publish: () => Promise<T>,
): Promise<T> {
  const { namespace, topic, payload } = event;
  await requireEventRoom(parts, namespace);
  await countPayload(parts, namespace, payload);
  const { topics } = await parts.quotas.of(namespace);
  if (topics === undefined) return publish();
  const isThere = (): Promise<boolean> => exists(parts.store, streams.topic(namespace, topic));
  // Most topics are known, and their events need not wait for the view.
  if (await isThere()) return publish();
  return createWithinQuota(parts, { namespace, quota: 'topics', isThere }, publish);
}

/**
 * Checks that a namespace may add to the log. While the views are unavailable, it may.
 * @throws RefusalError `STATE_CONFLICT`
 */
export async function requireEventRoom(parts: QuotaParts, namespace: string): Promise<void> {
  await requireRoom(parts, namespace, 'events', 1);
}

/**
 * Checks that a namespace may keep another artifact. While the views are unavailable, it may.
 * @throws RefusalError `STATE_CONFLICT`
 */
export async function requireArtifactRoom(
  parts: QuotaParts,
  namespace: string,
  bytes: number,
): Promise<void> {
  await requireRoom(parts, namespace, 'artifact_bytes', bytes);
}

async function requireRoom(
  parts: QuotaParts,
  namespace: string,
  quota: UsedQuota,
  more: number,
): Promise<void> {
  const { [quota]: limit } = await parts.quotas.of(namespace);
  if (limit === undefined) return;
  const { telemetry } = parts;
  let used = 0;
  try {
    used = (await namespaceUse(parts, namespace))[quota];
    telemetry.failures.worked(NOT_COUNTED);
  } catch (error) {
    telemetry.failures.failed(NOT_COUNTED, error);
    return;
  }
  if (used + more > limit) throw usedUp(parts, quota, limit, used);
}

/**
 * What runs of a namespace wait for whose quota is used up; null where none is.
 * @throws CoordinationError, EventStoreError, ReadModelError
 */
export async function quotaWait(
  parts: Pick<QuotaParts, 'coordination' | 'quotas' | 'readModel'>,
  namespace: string,
): Promise<string | null> {
  const { events: limit } = await parts.quotas.of(namespace);
  const { events: used } =
    limit === undefined ? { events: 0 } : await namespaceUse(parts, namespace);
  if (limit === undefined || used < limit) return rateWait(parts, namespace);
  return `room in the log: its namespace has ${used} of ${limit} events (quota events)`;
}

function usedUp(
  { telemetry }: Pick<QuotaParts, 'telemetry'>,
  quota: CountQuota,
  limit: number,
  used: number,
): RefusalError {
  telemetry.count('limit_refusals_total', { limit: quota });
  const message = `the quota ${quota} of the namespace is used up: ${used} of ${limit}; ${remedies[quota]}`;
  return new RefusalError('STATE_CONFLICT', message, { quota, limit, used, frees_at: null });
}

/** What failures are reported as. */
const NOT_COUNTED = 'could not read what a namespace uses of its quotas';

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
