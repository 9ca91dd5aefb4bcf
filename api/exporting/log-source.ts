import type { EventStore, Position, RawEvent, RecordedEvent } from '../../domain/event-store.ts';
import { showEvent } from '../endpoints/events/event-records.ts';
import type { EventSource } from './event-rows.ts';

/** How many events of a stream are read at a time. Each may have 512 KiB. */
const PAGE = 50;

/** The part of the log that is read. */
interface LogPart {
  /** Only events strictly after this position. */
  readonly after: Position;
  /** Only this stream. */
  readonly stream: string | undefined;
  /** Ends the reading without an error. */
  readonly signal: AbortSignal;
  /** Whether an event's stream is in the reader's reach; null: every stream is. */
  readonly isVisible: ((event: RecordedEvent) => Promise<boolean>) | null;
}

/**
 * The events of the log up to its end, as auditors see them: in the present version of their type, without hidden fields.
 * @throws EventStoreError `UNAVAILABLE`, and `NEWER_SCHEMA` for an event that this release does not know
 */
export function eventsOfLog(store: EventStore, part: LogPart): EventSource {
  return {
    async *parts({ types, kinds }) {
      const isWanted = ({ type }: RecordedEvent): boolean =>
        types === undefined || types.includes(type);
      const pages =
        part.stream === undefined ? wholeLog(store, part, kinds) : ofStream(store, part);
      for await (const events of pages) {
        const seen = part.isVisible === null ? events : await visible(events, part.isVisible);
        yield { events: rowsOf(seen, isWanted), read: events.length, share: 0 };
      }
    },
  };
}

async function visible(
  events: readonly RecordedEvent[],
  isVisible: NonNullable<LogPart['isVisible']>,
): Promise<readonly RecordedEvent[]> {
  const seen: RecordedEvent[] = [];
  for (const event of events) if (await isVisible(event)) seen.push(event);
  return seen;
}

/** One at a time, because the JSON of a whole page would double its memory. */
function* rowsOf(
  events: readonly RecordedEvent[],
  isWanted: (event: RecordedEvent) => boolean,
): Generator<RawEvent> {
  for (const event of events) if (isWanted(event)) yield rawOf(event);
}

async function* wholeLog(
  store: EventStore,
  { after, signal }: LogPart,
  prefixes: readonly string[] | undefined,
): AsyncGenerator<readonly RecordedEvent[]> {
  const wanted = { after, signal, once: true, ...(prefixes === undefined ? {} : { prefixes }) };
  for await (const message of store.subscribe(wanted)) {
    if (message.kind === 'events') yield message.events;
  }
}

async function* ofStream(
  store: EventStore,
  { after, stream = '', signal }: LogPart,
): AsyncGenerator<readonly RecordedEvent[]> {
  for (let from = 0; !signal.aborted;) {
    const page = await store.readStream(stream, { from, limit: PAGE, faulty: true });
    yield page.filter(({ position }) => position > after);
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    from = last.revision + 1;
  }
}

/** An event in the form of the log's file. Broken JSON stays unchanged. */
function rawOf(event: RecordedEvent): RawEvent {
  const { id, type, stream, revision, position, createdAt } = event;
  const { data, metadata } = showEvent(event) as { readonly data: unknown; metadata: unknown };
  const isBroken = event.fault !== undefined && typeof data === 'string';
  const json = isBroken ? data : JSON.stringify(data);
  const row = { id, type, stream, revision, position, createdAt };
  return { ...row, data: json, metadata: JSON.stringify(metadata) };
}
