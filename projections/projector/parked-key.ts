import {
  BEGINNING,
  EventStoreError,
  type Position,
  type RecordedEvent,
} from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ParkedKeyOrder } from '../../domain/operators/projection-orders.ts';
import { skippedEventKey } from '../../domain/operators/skipped-events.ts';
import { foldBatch, touchingEvents, type PoisonedKey } from './fold-batch.ts';
import { parkedView } from './parking.ts';
import type { ViewOptions } from './view-options.ts';
import type { ViewOrders } from './view-orders.ts';

/** The document of a parked key, folded up to the last event that could be. */
interface Refolded {
  readonly position: Position;
  readonly document: JsonObject | null;
  readonly upTo: Position;
  /** The event that still parks the key; null for none. */
  readonly poisoned: PoisonedKey | null;
}

/** A parked key of the live generation, and the orders for it. */
export interface ParkedKeyWork {
  readonly key: string;
  readonly ordered: ParkedKeyOrder;
  readonly generation: number;
  readonly signal: AbortSignal;
  /** Stops feeding the generation. Called before the generation is written. */
  readonly stopFollower: () => Promise<void>;
}

const PAGE = 1000;

/**
 * Folds the events that were withheld from a parked key and releases it, or parks it at the next event that cannot be
 * folded. Most events are folded while the view is still fed; only the last ones and the write interrupt the feed.
 *
 * @throws ReadModelError, EventStoreError
 */
export async function settleParkedKey(
  options: ViewOptions,
  orders: ViewOrders,
  work: ParkedKeyWork,
): Promise<void> {
  const { key, ordered, signal } = work;
  const skipError = ordered.order === 'skip' ? await recordSkip(options, orders, work) : null;
  const error = skipError ?? (await refold(options, work));
  if (signal.aborted) return;
  const { schema } = options.projection;
  const { version } = ordered;
  await orders.append(({ parked }) =>
    parked.has(key) ? [{ type: 'ParkedKeySettled', data: { schema, version, key, error } }] : [],
  );
}

/**
 * Records, once, which event an order skips. The record comes first: after a crash, later generations know of the skip.
 * One order skips one event: if the key is parked for another event by now, that one stays parked.
 *
 * @returns why the key stays parked, if the order was carried out before; otherwise null
 */
async function recordSkip(
  { parking, projection }: ViewOptions,
  orders: ViewOrders,
  { generation, key }: ParkedKeyWork,
): Promise<string | null> {
  const held = await parking.find(parkedView(projection, generation), key);
  if (held === null) return null;
  const { schema } = projection;
  const { stream, revision = null, position, type: event_type, error } = held;
  const place = { key, stream, revision, position };
  const recorded = await orders.append(({ parked }) => {
    const ordered = parked.get(key);
    if (ordered?.order !== 'skip' || ordered.left !== null) return [];
    const data = { schema, version: ordered.version, ...place, event_type, error };
    return [{ type: 'ParkedEventSkipped', data }];
  });
  const left = recorded.parked.get(key)?.left ?? null;
  return left === null || left === skippedEventKey(place) ? null : error;
}

/** @returns why the key stays parked; null if it is released */
async function refold(
  options: ViewOptions,
  { key, ordered, generation, signal, stopFollower }: ParkedKeyWork,
): Promise<string | null> {
  const { store, readModel, projection, parking, fence } = options;
  const view = parkedView(projection, generation);
  const parked = await parking.find(view, key);
  if (parked === null) return null;
  const kept = (await readModel.get(projection, key)) ?? { position: BEGINNING, document: null };
  const start: Refolded = { ...kept, upTo: parked.position, poisoned: null };
  const withPoison = ordered.order === 'skip' ? start : await foldPoison(options, parked, start);
  const first = await foldOn(options, key, withPoison, null, signal);
  await stopFollower();
  const writer = await readModel.openWriter(projection, { generation, bulk: false, fence });
  try {
    const from = await writer.checkpoint();
    const { position, document, poisoned } = await foldOn(options, key, first, from, signal);
    if (position > kept.position) {
      await writer.write({ documents: [{ key, position, document }], from, to: from });
    }
    if (signal.aborted) return null;
    if (poisoned === null) await parking.release(view, key, await store.head());
    else await parking.park(view, [poisoned]);
    return poisoned?.error ?? null;
  } finally {
    await writer.close();
  }
}

/** Folds the event that parked the key, unless that event has been truncated from the log. */
async function foldPoison(
  { store, projection }: ViewOptions,
  parked: PoisonedKey,
  start: Refolded,
): Promise<Refolded> {
  const { key, stream, position } = parked;
  try {
    for (let from = 0; ;) {
      const page = await store.readStream(stream, { from, limit: PAGE });
      const found = page.find((event) => event.position === position);
      if (found !== undefined) return fold(projection, key, start, [found], start.upTo);
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) return start;
      from = last.revision + 1;
    }
  } catch (error) {
    if (!(error instanceof EventStoreError && error.code === 'CORRUPT_EVENT')) throw error;
    return { ...start, poisoned: { ...parked, error: error.message } };
  }
}

/** Folds on to a position, or (null) to the end of the log. */
async function foldOn(
  { store, projection }: ViewOptions,
  key: string,
  before: Refolded,
  to: Position | null,
  signal: AbortSignal,
): Promise<Refolded> {
  let refolded = before;
  if (refolded.poisoned !== null || (to !== null && refolded.upTo >= to)) return refolded;
  const done = new AbortController();
  const messages = store.subscribe({
    after: refolded.upTo,
    prefixes: projection.streams,
    signal: AbortSignal.any([signal, done.signal]),
  });
  try {
    for await (const message of messages) {
      if (message.kind === 'caught-up')
        return fold(projection, key, refolded, [], message.position);
      const { events } = message;
      const wanted = to === null ? events : events.filter(({ position }) => position <= to);
      refolded = fold(projection, key, refolded, wanted, wanted.at(-1)?.position ?? refolded.upTo);
      if (refolded.poisoned !== null || wanted.length < events.length) return refolded;
    }
    return refolded;
  } finally {
    done.abort();
  }
}

function fold(
  projection: ViewOptions['projection'],
  key: string,
  before: Refolded,
  events: readonly RecordedEvent[],
  upTo: Position,
): Refolded {
  const touching = touchingEvents(projection, events, '')
    .filter(({ keys }) => keys.includes(key))
    .map((each) => ({ ...each, keys: [key] }));
  const known = new Map([[key, before]]);
  const { documents, poisoned } = foldBatch(projection, touching, known, new Map());
  const { position, document } = documents[0] ?? before;
  const end = upTo > before.upTo ? upTo : before.upTo;
  return { position, document, upTo: end, poisoned: poisoned[0] ?? null };
}
