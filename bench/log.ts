import {
  BEGINNING,
  type EventStore,
  type RecordedEvent,
  type StreamAppend,
} from '../domain/event-store.ts';
import { createEventCodec } from '../domain/events/codec.ts';
import { silent } from '../observability/telemetry.ts';
import { openSqliteEventStore } from '../stores/sqlite/event-log/event-store.ts';

/** Opens the embedded log of a folder, works on it and closes it. */
export async function withLog<T>(
  directory: string,
  work: (store: EventStore) => Promise<T>,
): Promise<T> {
  const codec = createEventCodec();
  const store = await openSqliteEventStore({ directory, codec, telemetry: silent });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

/** Most sequences of appends under way. */
const MAX_SEQUENCES = 4;

/** Appends in sequences of `size`, several at a time. */
export async function appendAll(
  store: EventStore,
  appends: Iterable<StreamAppend>,
  size: number,
): Promise<void> {
  const underWay: Promise<unknown>[] = [];
  let sequence: StreamAppend[] = [];
  for (const append of appends) {
    sequence.push(append);
    if (sequence.length < size) continue;
    underWay.push(store.appendInOrder(sequence));
    sequence = [];
    if (underWay.length > MAX_SEQUENCES) await underWay.shift();
  }
  await Promise.all([...underWay, store.appendInOrder(sequence)]);
}

/** All events of a log. */
export async function* allEvents(store: EventStore): AsyncGenerator<RecordedEvent> {
  for (let after = BEGINNING; ;) {
    const page = await store.readAll(after, 1000);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.position;
  }
}

/** Calls `work` with 0 to `count` - 1, `size` of them at a time. Returns all results in order. */
export async function inChunks<T>(
  count: number,
  size: number,
  work: (index: number) => Promise<T>,
): Promise<T[]> {
  const results: T[] = [];
  for (let from = 0; from < count; from += size) {
    const length = Math.min(size, count - from);
    results.push(
      ...(await Promise.all(Array.from({ length }, (_, offset) => work(from + offset)))),
    );
  }
  return results;
}
