import type { EventStore } from '../event-store.ts';
import type { TaskEvent } from '../events/catalogue.ts';
import { streams } from '../streams.ts';

const MAX_CACHED_TASKS = 10_000;
const PAGE_SIZE = 1000;

interface CachedOwners {
  readonly revision: number;
  readonly owners: ReadonlySet<string>;
}

const caches = new WeakMap<EventStore, Map<string, CachedOwners>>();

/**
 * All agents that own a task or have owned it, from the task's stream. Only new events are read again.
 *
 * @throws EventStoreError all errors of the log
 */
export async function ownersOf(store: EventStore, taskId: string): Promise<ReadonlySet<string>> {
  const cache = caches.get(store) ?? new Map<string, CachedOwners>();
  caches.set(store, cache);
  let { revision, owners } = cache.get(taskId) ?? { revision: -1, owners: new Set<string>() };
  for (;;) {
    const part = { from: revision + 1, limit: PAGE_SIZE, faulty: true };
    const events = await store.readStream(streams.task(taskId), part);
    revision = events.at(-1)?.revision ?? revision;
    const sound = events.filter(({ fault }) => fault === undefined) as readonly unknown[];
    owners = new Set([...owners, ...(sound as readonly TaskEvent[]).flatMap(ownerIn)]);
    if (events.length < PAGE_SIZE) break;
  }
  if (cache.size >= MAX_CACHED_TASKS) cache.clear();
  cache.set(taskId, { revision, owners });
  return owners;
}

function ownerIn(event: TaskEvent): readonly string[] {
  if (event.type === 'TaskCreated') return [event.data.definition.created_by];
  const owner = event.type === 'TaskUpdated' ? event.data.changes.created_by : undefined;
  return owner === undefined ? [] : [owner];
}
