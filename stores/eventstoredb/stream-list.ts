import {
  BEGINNING,
  EventStoreError,
  type Position,
  type StreamEnd,
  type StreamPage,
} from '../../domain/event-store.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { LogReader } from './log-reader.ts';
import { isSystemEvent, toRawEvent, type ClientEvent } from './client-event.ts';

/** The most events that a page reads, and the events of one read. */
const MAX_EVENTS = 20_000;
const PAGE = 1_000;
/** Streams whose ends are read at once. */
const CONCURRENT_READS = 8;

/**
 * Streams by their first events, in the order in which they began. EventStoreDB has no index of names by prefix; its
 * `$streams` exists only where a server projection runs, which many operators turn off.
 * @throws EventStoreError `INVALID_EVENT` for an invalid `after`, `UNAVAILABLE`
 */
export async function listStreams(
  reader: LogReader,
  options: { readonly prefix: string; readonly after?: string; readonly limit: number },
): Promise<StreamPage> {
  const { prefix, after = BEGINNING, limit } = options;
  const names: string[] = [];
  let visited = 0;
  let last: Position = after;
  const ended = await reader.forwards(after, PAGE, (event, position) => {
    visited += 1;
    last = position;
    if (isFirstOf(event, prefix)) names.push(event.streamId);
    return names.length < limit && visited < MAX_EVENTS ? 'more' : 'enough';
  });
  const streams: StreamEnd[] = [];
  for (let from = 0; from < names.length; from += CONCURRENT_READS) {
    const part = names.slice(from, from + CONCURRENT_READS);
    const ends = await Promise.all(part.map((name) => endOf(reader, name)));
    for (const end of ends) if (end !== null) streams.push(end);
  }
  return { streams, next: ended ? null : last };
}

const isFirstOf = (event: ClientEvent, prefix: string): boolean =>
  Number(event.revision) === 0 && !isSystemEvent(event) && event.streamId.startsWith(prefix);

/** Where a stream ends; null when it is wholly truncated or deleted. The events' metadata may hold anything. */
async function endOf(reader: LogReader, stream: string): Promise<StreamEnd | null> {
  const last = await lastOf(reader, stream);
  if (last === undefined) return null;
  const { revision, createdAt } = toRawEvent(last);
  const occurredAt = isJsonObject(last.metadata) ? last.metadata.occurredAt : undefined;
  return { stream, revision, lastAt: typeof occurredAt === 'string' ? occurredAt : createdAt };
}

async function lastOf(reader: LogReader, stream: string): Promise<ClientEvent | undefined> {
  try {
    const [last] = await reader.stream(stream, 'end', 'backwards', 1);
    return last;
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'STREAM_DELETED') return undefined;
    throw error;
  }
}
