import type { EarlierRun, KeyUse } from './dedupe.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import { mapInBatches } from '../map-in-batches.ts';
import { streams } from '../streams.ts';
import type { KeyName } from './key.ts';
import { addUses, KEPT_DEDUPE_EVENTS } from './dedupe-history.ts';

const CONCURRENCY = 32;

const MAX_CACHED_KEYS = 10_000;

/** The open uses up to a revision: the runs of all other uses have ended. */
interface CachedUses {
  readonly revision: number;
  readonly open: readonly KeyUse[];
}

/** By key. A run that has ended does not change any more, and is not looked up again. */
const caches = new WeakMap<EventStore, Map<string, CachedUses>>();

/**
 * The uses of a key whose runs have not ended, the earliest written first. The first call checks every recorded use.
 * Later calls check those that were open, and new ones.
 *
 * @param pending events that are about to be appended
 * @param became what happened to the run of a use
 * @throws EventStoreError all errors of the log
 */
export async function openUses(
  store: EventStore,
  name: KeyName,
  pending: readonly KeyEvent[],
  became: (use: KeyUse) => Promise<EarlierRun>,
): Promise<readonly KeyUse[]> {
  const stream = streams.key(name.kind, name.owner, name.key);
  const cache = caches.get(store) ?? new Map<string, CachedUses>();
  caches.set(store, cache);
  const before = cache.get(stream) ?? { revision: -1, open: [] };
  const written = await eventsAfter(store, stream, before.revision);
  const sound = written.filter(({ fault }) => fault === undefined) as readonly unknown[];
  const known = new Map(before.open.map((use) => [use.run_id, use]));
  const recorded = addUses(known, sound as readonly KeyEvent[]);
  const uses = [...addUses(new Map(recorded), pending).values()];
  const results = await mapInBatches(uses, CONCURRENCY, became);
  const open = uses.filter((_, index) => results[index] === 'unfinished');
  if (cache.size >= MAX_CACHED_KEYS) cache.clear();
  const revision = written.at(-1)?.revision ?? before.revision;
  cache.set(stream, { revision, open: open.filter(({ run_id }) => recorded.has(run_id)) });
  return open;
}

/** The events of a key after a revision, in order; only the last ones if there are very many. */
async function eventsAfter(
  store: EventStore,
  stream: string,
  revision: number,
): Promise<readonly RecordedEvent[]> {
  const page = { limit: KEPT_DEDUPE_EVENTS, faulty: true } as const;
  if (revision >= 0) {
    const since = await store.readStream(stream, { ...page, from: revision + 1 });
    if (since.length < KEPT_DEDUPE_EVENTS) return since;
  }
  const last = await store.readStream(stream, { ...page, direction: 'backwards' });
  return last.toReversed();
}
