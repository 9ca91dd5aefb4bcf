import type { EarlierRun, KeyUse } from './dedupe.ts';
import type { EventStore, RecordedEvent } from '../event-store.ts';
import type { KeyEvent } from '../events/catalogue.ts';
import { sideBySide } from '../side-by-side.ts';
import { streams } from '../streams.ts';
import type { KeyName } from './key.ts';
import { USES_LEFT } from './late-use.ts';

/** Runs that are looked at side by side. */
const SIDE_BY_SIDE = 32;

/** Keys that are remembered. */
const MOST_KEYS = 10_000;

/** What is known of the uses of a key that its events tell of up to one of them: all others have runs that are over. */
interface Seen {
  readonly revision: number;
  readonly open: readonly KeyUse[];
}

/** Of each key, for this process: a run that is over stays so, and is not asked for again. */
const seenKeys = new WeakMap<EventStore, Map<string, Seen>>();

/**
 * The uses of a key whose runs are not over, the earliest written first. All that the key's stream tells of are looked
 * at once; from then on those that were open, and those that have come since.
 *
 * @param pending what is about to be appended, and does not stand there yet
 * @param became what became of the run of a use
 * @throws EventStoreError all that the log throws
 */
export async function openUses(
  store: EventStore,
  name: KeyName,
  pending: readonly KeyEvent[],
  became: (use: KeyUse) => Promise<EarlierRun>,
): Promise<readonly KeyUse[]> {
  const stream = streams.key(name.kind, name.owner, name.key);
  const keys = seenKeys.get(store) ?? new Map<string, Seen>();
  seenKeys.set(store, keys);
  const before = keys.get(stream) ?? { revision: -1, open: [] };
  const written = await eventsBehind(store, stream, before.revision);
  const sound = written.filter(({ fault }) => fault === undefined) as readonly unknown[];
  const told = usesOf(before.open, sound as readonly KeyEvent[]);
  const all = usesOf([...told.values()], pending);
  const uses = [...all.values()];
  const results = await sideBySide(uses, SIDE_BY_SIDE, became);
  const open = uses.filter((_, index) => results[index] === 'unfinished');
  if (keys.size >= MOST_KEYS) keys.clear();
  const revision = written.at(-1)?.revision ?? before.revision;
  keys.set(stream, { revision, open: open.filter(({ run_id }) => told.has(run_id)) });
  return open;
}

/** The events of a key behind one of them, in their order; of very many the last. */
async function eventsBehind(
  store: EventStore,
  stream: string,
  revision: number,
): Promise<readonly RecordedEvent[]> {
  const page = { limit: USES_LEFT, faulty: true } as const;
  if (revision >= 0) {
    const since = await store.readStream(stream, { ...page, from: revision + 1 });
    if (since.length < USES_LEFT) return since;
  }
  const last = await store.readStream(stream, { ...page, direction: 'backwards' });
  return last.toReversed();
}

/** Uses by their runs, each once. */
function usesOf(uses: readonly KeyUse[], events: readonly KeyEvent[]): ReadonlyMap<string, KeyUse> {
  const all = new Map(uses.map((use) => [use.run_id, use]));
  for (const { data } of events) {
    if (data.used !== null && !all.has(data.used.run_id)) all.set(data.used.run_id, data.used);
  }
  return all;
}
