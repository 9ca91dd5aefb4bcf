import { writeJson } from '../../../domain/exact-numbers.ts';
import {
  EventStoreError,
  sound,
  type EventStore,
  type RecordedEvent,
} from '../../../domain/event-store.ts';
import { StreamEvents, StreamPage } from '../../schemas/answer-schemas-audit.ts';
import { auditScope, recordReading } from './audit-access.ts';
import { EventsQuery, StreamsQuery } from '../../schemas/audit-schemas.ts';
import { endpoint, type Endpoint } from '../../endpoint.ts';
import { badRequest, notFound } from '../../errors.ts';
import { listText, Room } from '../listing.ts';
import { showEvent } from '../events/event-records.ts';

/** Events that are read at a time: each may have 512 KiB. */
const READ = 20;

const list = endpoint<unknown, StreamsQuery>({
  method: 'get',
  paths: ['/streams'],
  operationId: 'listStreams',
  summary: 'Lists the streams of the log whose names begin with a prefix',
  scopes: [auditScope],
  query: StreamsQuery,
  bulky: true,
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
  operationId: 'readStream',
  summary: 'Shows the events of a stream',
  scopes: [auditScope],
  query: EventsQuery,
  bulky: true,
  answers: { 200: StreamEvents },
  refusals: ['not_found'],
  async handle(call) {
    const { dependencies, parameters, query } = call;
    const stream = parameters['stream'] ?? '';
    await recordReading(call, 'GET /streams/{stream}');
    const { items, last } = await page(dependencies.store, stream, query);
    if (last === undefined && !(await isThere(dependencies.store, stream))) {
      throw notFound('stream', stream);
    }
    const next_from = await nextFrom(dependencies.store, stream, query, last);
    return { body: null, text: listText('items', items, { stream, next_from }) };
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

/**
 * Events as JSON, and the last of them. They come whole, as nothing else shows what the log has.
 * @throws EventStoreError `CORRUPT_EVENT` where the first event can't be read; later ones end the page
 */
async function page(
  store: EventStore,
  stream: string,
  { from, direction, limit }: EventsQuery,
): Promise<{ readonly items: readonly string[]; readonly last: RecordedEvent | undefined }> {
  const items: string[] = [];
  const room = new Room();
  let shown: RecordedEvent | undefined;
  for (let at = from; items.length < limit;) {
    const wanted = Math.min(READ, limit - items.length);
    const options = { direction, limit: wanted, faulty: true };
    const part = await store.readStream(
      stream,
      at === undefined ? options : { ...options, from: at },
    );
    for (const event of part) {
      if (event.fault !== undefined && items.length > 0) return { items, last: shown };
      const item = writeJson(showEvent(sound(event)));
      if (!room.takes(item)) return { items, last: shown };
      items.push(item);
      shown = event;
    }
    const last = part.at(-1);
    if (last === undefined || part.length < wanted) break;
    at = last.revision + (direction === 'forwards' ? 1 : -1);
    if (at < 0) break;
  }
  return { items, last: shown };
}

/** Where to go on; null where there is nothing behind the page. */
async function nextFrom(
  store: EventStore,
  stream: string,
  { direction }: EventsQuery,
  last: RecordedEvent | undefined,
): Promise<number | null> {
  if (last === undefined) return null;
  const from = last.revision + (direction === 'forwards' ? 1 : -1);
  if (from < 0) return null;
  const [more] = await store.readStream(stream, { from, direction, limit: 1, faulty: true });
  return more?.revision ?? null;
}

async function isThere(store: EventStore, stream: string): Promise<boolean> {
  const options = { direction: 'backwards', limit: 1, faulty: true } as const;
  return (await store.readStream(stream, options)).length > 0;
}

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
