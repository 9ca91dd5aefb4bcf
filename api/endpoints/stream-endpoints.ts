import { EventStoreError, type EventStore, type RecordedEvent } from '../../domain/event-store.ts';
import { StreamEvents, StreamPage } from '../schemas/answer-schemas-audit.ts';
import { auditScope, recordReading } from './audit-access.ts';
import { EventsQuery, StreamsQuery } from '../schemas/audit-schemas.ts';
import { endpoint, type Endpoint } from '../endpoint.ts';
import { badRequest, notFound } from '../errors.ts';
import { showEvent } from './event-records.ts';

/** Events that are read at a time, and characters of them after which a page ends early: each may have 512 KiB. */
const READ = 20;
const PAGE_CHARACTERS = 4 * 1024 * 1024;

const list = endpoint<unknown, StreamsQuery>({
  method: 'get',
  paths: ['/streams'],
  summary: 'Lists the streams of the log whose names begin with a prefix',
  scopes: [auditScope],
  query: StreamsQuery,
  answers: { 200: StreamPage },
  async handle(call) {
    const { prefix, limit, cursor } = call.query;
    const after = cursor === undefined ? undefined : placeOf(cursor, prefix);
    await recordReading(call, 'GET /streams');
    const options = { prefix, limit, ...(after === undefined ? {} : { after }) };
    const { streams, next } = await listed(call.dependencies.store, options);
    const items = streams.map(({ stream, revision, lastAt }) => ({
      stream,
      revision,
      last_at: lastAt,
    }));
    return { body: { items, next_cursor: next === null ? null : cursorAt(next, prefix) } };
  },
});

const read = endpoint<unknown, EventsQuery>({
  method: 'get',
  paths: ['/streams/:stream'],
  summary: 'Shows the events of a stream',
  scopes: [auditScope],
  query: EventsQuery,
  answers: { 200: StreamEvents },
  refusals: ['not_found'],
  async handle(call) {
    const { dependencies, parameters, query } = call;
    const stream = parameters['stream'] ?? '';
    await recordReading(call, 'GET /streams/{stream}');
    const events = await page(dependencies.store, stream, query);
    if (events.length === 0 && !(await isThere(dependencies.store, stream))) {
      throw notFound('stream', stream);
    }
    const next_from = await nextFrom(dependencies.store, stream, query, events);
    return { body: { stream, items: events.map(showEvent), next_from } };
  },
});

export const streamEndpoints: readonly Endpoint[] = [list, read];

/** @throws HttpError 400 for a cursor that is none of this log */
async function listed(store: EventStore, options: Parameters<EventStore['listStreams']>[0]) {
  try {
    return await store.listStreams(options);
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'INVALID_EVENT') throw noCursor();
    throw error;
  }
}

async function page(
  store: EventStore,
  stream: string,
  { from, direction, limit }: EventsQuery,
): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  let characters = 0;
  for (let at = from; events.length < limit && characters < PAGE_CHARACTERS;) {
    const wanted = Math.min(READ, limit - events.length);
    const options = { direction, limit: wanted, ...(at === undefined ? {} : { from: at }) };
    const part = await readable(store, stream, options, events.length > 0);
    for (const event of part) characters += JSON.stringify(event.data).length;
    events.push(...part);
    const last = part.at(-1);
    // Cut short by an event that can't be read: the next page begins with that.
    if (last === undefined || part.length < wanted) break;
    at = last.revision + (direction === 'forwards' ? 1 : -1);
    if (at < 0) break;
  }
  return events;
}

type Part = { readonly from?: number; readonly direction: Direction; readonly limit: number };
type Direction = EventsQuery['direction'];

/**
 * As the log reads it; where it comes upon an event that can't be read, those before it.
 * @throws EventStoreError `CORRUPT_EVENT` where there are none, unless the page has some already
 */
async function readable(
  store: EventStore,
  stream: string,
  part: Part,
  begun: boolean,
): Promise<readonly RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  try {
    return await store.readStream(stream, part);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
  }
  try {
    for (let at = part.from; at === undefined || at >= 0;) {
      const one = { ...part, limit: 1, ...(at === undefined ? {} : { from: at }) };
      const [event] = await store.readStream(stream, one);
      if (event === undefined) break;
      events.push(event);
      at = event.revision + (part.direction === 'forwards' ? 1 : -1);
    }
  } catch (error) {
    if (!isCorrupt(error) || (events.length === 0 && !begun)) throw error;
  }
  return events;
}

/** Where to go on; null where there is nothing behind the page. */
async function nextFrom(
  store: EventStore,
  stream: string,
  { direction }: EventsQuery,
  events: readonly RecordedEvent[],
): Promise<number | null> {
  const last = events.at(-1);
  if (last === undefined) return null;
  const from = last.revision + (direction === 'forwards' ? 1 : -1);
  if (from < 0) return null;
  try {
    const [more] = await store.readStream(stream, { from, direction, limit: 1 });
    return more?.revision ?? null;
  } catch (error) {
    if (isCorrupt(error)) return error.revision ?? from;
    throw error;
  }
}

async function isThere(store: EventStore, stream: string): Promise<boolean> {
  try {
    return (await store.readStream(stream, { direction: 'backwards', limit: 1 })).length > 0;
  } catch (error) {
    if (isCorrupt(error)) return true;
    throw error;
  }
}

const isCorrupt = (error: unknown): error is EventStoreError =>
  error instanceof EventStoreError && error.code === 'CORRUPT_EVENT';

const cursorAt = (place: string, prefix: string): string =>
  Buffer.from(JSON.stringify([prefix, place])).toString('base64url');

/** @throws HttpError 400 for what is no cursor of a list with this prefix */
function placeOf(cursor: string, prefix: string): string {
  try {
    const [of, place] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (of === prefix && typeof place === 'string') return place;
  } catch {
    // Falls through to the refusal: whatever it is, it is no cursor of ours.
  }
  throw noCursor();
}

const noCursor = (): Error =>
  badRequest([{ field: 'cursor', issue: 'is not a cursor of this list' }]);
