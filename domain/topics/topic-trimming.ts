import { fromIso, toIso, type Instant } from '../clock.ts';
import type { EventStore, Position, RecordedEvent } from '../event-store.ts';
import { toNewEvents, type CommandContext } from '../handle.ts';
import { nameBasedId } from '../ids.ts';
import { DEFAULT_NAMESPACE } from '../namespaces/namespace.ts';
import { idOf, streams } from '../streams.ts';
import { tryAppend } from '../try-append.ts';

/**
 * A view's knowledge of a topic: the revision up to which it is trimmed, and the events that are not published events.
 */
export interface TopicExtent {
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly topic: string;
  /** All events before this revision are trimmed. */
  readonly before: number;
  /** Revisions of `TopicTrimmed` events from there on. */
  readonly trims: readonly number[];
}

/** The result of trimming a topic. */
export interface Trimmed {
  /** Publications removed. */
  readonly deleted: number;
  /** The position of the last `TopicTrimmed` that the view may lack; null if there was nothing to trim. */
  readonly position: Position | null;
}

const PAGE = 100;

/** Attempts to append `TopicTrimmed` at a known revision while others publish to the topic. */
const MAX_ATTEMPTS = 20;

/**
 * Removes all publications before a time from a topic: appends `TopicTrimmed`, by which views learn of it, and
 * truncates the stream. Clocks of publishers may differ, so publications may be slightly out of order. All events after
 * a kept publication are kept too. Each of several concurrent trims counts only the events that it removed itself.
 *
 * @param extent as a view knows it
 * @param knownUpTo a position that this view has reached
 * @param requestedUpTo the position up to which triggered runs were requested: later publications stay in the log until
 *   the topic is trimmed again
 */
export async function trimTopic(
  store: EventStore,
  extent: TopicExtent,
  cutoff: Instant,
  { knownUpTo, requestedUpTo }: { readonly knownUpTo: Position; readonly requestedUpTo: Position },
  context: CommandContext,
): Promise<Trimmed> {
  const { namespace = DEFAULT_NAMESPACE, topic } = extent;
  const stream = streams.topic(namespace, topic);
  const [[oldest], [newest]] = await Promise.all([
    store.readStream(stream, { limit: 1 }),
    store.readStream(stream, { direction: 'backwards', limit: 1 }),
  ]);
  if (oldest === undefined || newest === undefined) return { deleted: 0, position: null };
  const inLog = { from: oldest.revision, to: newest.revision + 1 };
  const known = await extentNow(store, stream, extent, newest, knownUpTo);
  const first = Math.max(known.before, oldest.revision);
  const isKept = (event: RecordedEvent): boolean => fromIso(event.metadata.occurredAt) >= cutoff;
  const before = await firstRevision(store, stream, { ...inLog, from: first }, isKept);
  const trims = known.trims.filter((revision) => revision >= first && revision < before);
  const deleted = before - first - trims.length;
  let position = known.at;
  if (deleted > 0) {
    const remaining = await oldestFrom(store, stream, before);
    const data = {
      cutoff: toIso(cutoff),
      deleted_count: deleted,
      first,
      before,
      oldest_at: remaining ?? toIso(context.now),
    };
    const commandId = nameBasedId('trim', context.commandId, idOf(stream));
    const own = { ...context, commandId, namespace };
    const events = toNewEvents(stream, [{ type: 'TopicTrimmed', data }], own);
    position = await appendTrimmed(store, stream, events, newest.revision);
    if (position === null) {
      return trimTopic(store, extent, cutoff, { knownUpTo, requestedUpTo }, context);
    }
  }
  // The last `TopicTrimmed` stays, because a rebuilt view knows the topic by it.
  const to = deleted > 0 ? before : Math.min(before, known.trims.at(-1) ?? first);
  await truncateUpTo(store, stream, { ...inLog, to }, requestedUpTo);
  return { deleted, position };
}

/** A view's knowledge of a topic, updated from the log. `at`: position of the last `TopicTrimmed` read. */
async function extentNow(
  store: EventStore,
  stream: string,
  extent: TopicExtent,
  newest: Pick<RecordedEvent, 'revision' | 'position'>,
  knownUpTo: Position,
): Promise<Pick<TopicExtent, 'before' | 'trims'> & { readonly at: Position | null }> {
  let { before } = extent;
  let at: Position | null = null;
  const trims = new Set(extent.trims);
  let { position } = newest;
  for (let from = newest.revision; from >= 0 && position > knownUpTo;) {
    const part = { from, direction: 'backwards', limit: PAGE, faulty: true } as const;
    const page = await store.readStream(stream, part);
    for (const event of page) {
      if (!isTrimmed(event)) continue;
      before = Math.max(before, event.data.before);
      trims.add(event.revision);
      at ??= event.position;
    }
    const last = page.at(-1);
    if (last === undefined) break;
    from = last.revision - 1;
    ({ position } = last);
  }
  return { before, trims: [...trims].sort((one, other) => one - other), at };
}

function isTrimmed(
  event: RecordedEvent,
): event is Extract<RecordedEvent, { type: 'TopicTrimmed' }> {
  return event.fault === undefined && event.type === 'TopicTrimmed';
}

/**
 * Appends `TopicTrimmed`, unless another process has trimmed the topic in the meantime. Concurrent events don't matter.
 * @param seen the last revision on which the trim rests
 * @returns null if the topic was trimmed. The caller then decides again
 */
async function appendTrimmed(
  store: EventStore,
  stream: string,
  events: ReturnType<typeof toNewEvents>,
  seen: number,
): Promise<Position | null> {
  for (let [attempt, last] = [0, seen]; attempt < MAX_ATTEMPTS; attempt += 1) {
    const result = await tryAppend(store, stream, events, last);
    if (result !== null) return result.position;
    const part = { from: last + 1, limit: PAGE, faulty: true };
    const since = await store.readStream(stream, part);
    if (since.some(isTrimmed)) return null;
    last = since.at(-1)?.revision ?? last;
  }
  // Other processes publish without a pause.
  return (await store.append(stream, events, 'any')).position;
}

async function truncateUpTo(
  store: EventStore,
  stream: string,
  range: { readonly from: number; readonly to: number },
  requestedUpTo: Position,
): Promise<void> {
  if (range.to <= range.from) return;
  const isNeeded = (event: RecordedEvent): boolean => event.position > requestedUpTo;
  const before = await firstRevision(store, stream, range, isNeeded);
  if (before > range.from) await store.truncate(stream, before);
}

/**
 * Finds, by binary search, the first revision of a range whose event meets a condition. All later events must meet it
 * too. The range's end if there is none.
 */
async function firstRevision(
  store: EventStore,
  stream: string,
  range: { readonly from: number; readonly to: number },
  fits: (event: RecordedEvent) => boolean,
): Promise<number> {
  let { from, to } = range;
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const [event] = await store.readStream(stream, { from: middle, limit: 1 });
    // Another process has trimmed it in the meantime.
    if (event === undefined || event.revision !== middle) from = middle + 1;
    else if (fits(event)) to = middle;
    else from = middle + 1;
  }
  return from;
}

/** The time of the first publication at or after a revision; null for none. */
async function oldestFrom(
  store: EventStore,
  stream: string,
  revision: number,
): Promise<string | null> {
  for (let from = revision; ; from += PAGE) {
    const events = await store.readStream(stream, { from, limit: PAGE });
    for (const event of events) {
      if (event.type === 'EventPublished') return event.data.published_at;
    }
    if (events.length < PAGE) return null;
  }
}
