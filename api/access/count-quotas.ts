import { RefusalError } from '../../domain/errors.ts';
import type { CountQuota } from '../../domain/namespaces/quota-names.ts';
import { streams } from '../../domain/streams.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { exists, namespaceUse, presentCount, type UsedQuota } from './present-counts.ts';
import { countPayload, rateWait } from './quota-gate.ts';

/** The dependencies of the checks of namespaces' quotas. */
export type QuotaParts = Pick<
  ApiDependencies,
  'coordination' | 'clock' | 'telemetry' | 'quotas' | 'store' | 'readModel' | 'positions'
>;

/** The way in which a caller can make room, by quota. */
const remedies: Readonly<Record<CountQuota, string>> = {
  tasks: 'cancel one first',
  agents: 'remove one first',
  topics: 'use a topic that already has events',
  events: 'wait until retention removes old runs, or trim topics',
  artifact_bytes: 'wait until retention removes old runs',
};

/** The object that a command is about to create. */
interface Creation {
  readonly namespace: string;
  readonly quota: CountQuota;
  /** Whether it already exists, because of an earlier attempt of this command or of another one. */
  readonly isThere: () => Promise<boolean>;
}

/** The last creation of each namespace and quota in this process. The next one waits for it. */
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

/**
 * Creates something whose number per namespace is limited. In one process, creations of a namespace with such a quota
 * run one after another, so that they cannot exceed the limit together. Several processes may exceed it by one each.
 * @throws RefusalError `STATE_CONFLICT` if the limit is reached; errors of `create`
 */
export async function createWithinQuota<T>(
  parts: QuotaParts,
  { namespace, quota, isThere }: Creation,
  create: () => Promise<T>,
): Promise<T> {
  if ((await parts.quotas.of(namespace))[quota] === undefined) return create();
  return inTurn(parts.quotas, `${quota} ${namespace}`, async () => {
    // Read again, because the count may have changed while others had their turn.
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
  // Most topics already exist, and events on these need not wait for the view.
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
 * The condition for which a namespace's runs wait when a quota is used up; null if no quota is.
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

/** The message that reports a failure. */
const NOT_COUNTED = "could not read the use of a namespace's quotas";

async function inTurn<T>(owner: object, name: string, work: () => Promise<T>): Promise<T> {
  const queue = turns.get(owner) ?? new Map<string, Promise<unknown>>();
  turns.set(owner, queue);
  // A failure of the previous creation concerns only that caller.
  const mine = (queue.get(name) ?? Promise.resolve()).then(work, work);
  queue.set(name, mine);
  try {
    return await mine;
  } finally {
    if (queue.get(name) === mine) queue.delete(name);
  }
}
