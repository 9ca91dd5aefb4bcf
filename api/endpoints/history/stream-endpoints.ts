import {
  EventStoreError,
  requireReadable,
  type EventStore,
  type StreamEnd,
  type StreamPage as StreamsPage,
  type RecordedEvent,
} from '../../../domain/event-store.ts';
import { StreamEvents, StreamPage } from '../../schemas/response-schemas-audit.ts';
import { auditScope, recordReading } from './audit-access.ts';
import { EventsQuery, StreamsQuery } from '../../schemas/audit-schemas.ts';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
import { seal, unseal } from '../../access/string-encryption.ts';
import { endpoint, type Call, type Endpoint } from '../../endpoint.ts';
import { notFound } from '../../errors.ts';
import { streamNamespacesIn } from './streams-in-reach.ts';
import { ItemList, invalidCursor, listJson } from '../listing.ts';
import { showEvent } from '../events/event-records.ts';

/** How many events are read at a time. Each may have 512 KiB. */
const PAGE = 20;

const list = endpoint('GET /streams', {
  operationId: 'listStreams',
  summary: 'Lists the streams of the log with names that begin with a prefix',
  scopes: [auditScope],
  query: StreamsQuery,
  hasLargeResponse: true,
  responses: { 200: StreamPage },
  async handle(call) {
    const { prefix, limit, cursor } = call.query;
    const { jwtKey } = call.dependencies.settings.tokenKeys;
    const isScoped = call.reach !== EVERY_NAMESPACE;
    const given = cursor !== undefined && isScoped ? unseal(cursor, jwtKey) : cursor;
    if (given === null) throw invalidCursor();
    const after = given === undefined ? undefined : placeOf(given, prefix);
    await recordReading(call);
    const options = { prefix, limit, ...(after === undefined ? {} : { after }) };
    const { streams, next } = isScoped
      ? await listInReach(call, options)
      : await listStreams(call.dependencies.store, options);
    const items = streams.map(({ stream, revision, lastAt: last_at }) => {
      return { stream, revision, last_at };
    });
    const place = next === null ? null : cursorAt(next, prefix);
    // The cursor may point to another namespace's stream.
    const next_cursor = place !== null && isScoped ? seal(place, jwtKey) : place;
    return { body: { items, next_cursor } };
  },
});

const read = endpoint('GET /streams/:stream', {
  operationId: 'readStream',
  summary: 'Shows the events of a stream',
  scopes: [auditScope],
  query: EventsQuery,
  hasLargeResponse: true,
  responses: { 200: StreamEvents },
  refusals: ['not_found'],
  async handle(call) {
    const { dependencies, parameters, query } = call;
    const stream = parameters['stream'] ?? '';
    await recordReading(call);
    if (call.reach !== EVERY_NAMESPACE) {
      const namespace = await streamNamespacesIn(dependencies).of(stream);
      if (namespace !== call.reach) throw notFound('stream', stream);
    }
    const { items, last } = await readEvents(dependencies.store, stream, query);
    if (last === undefined && !(await exists(dependencies.store, stream))) {
      throw notFound('stream', stream);
    }
    const next_from = await nextFrom(dependencies.store, stream, query, last);
    return { json: listJson('items', items, { stream, next_from }) };
  },
});

export const streamEndpoints: readonly Endpoint[] = [list, read];

/** How many streams are read at a time, and how many pages one request reads at most if most are out of reach. */
const SCANNED = 200;
const MAX_SCANS = 20;

/** The streams in the caller's reach. Another page may follow even after a short or empty one. */
async function listInReach(
  { dependencies, reach }: Pick<Call, 'dependencies' | 'reach'>,
  options: Parameters<EventStore['listStreams']>[0],
): Promise<StreamsPage> {
  const { store } = dependencies;
  const namespaces = streamNamespacesIn(dependencies);
  const found: StreamEnd[] = [];
  let { after } = options;
  for (let scans = 0; scans < MAX_SCANS; scans += 1) {
    const left = options.limit - found.length;
    const limit = scans === 0 ? left : Math.min(left, SCANNED);
    const { prefix } = options;
    const page = await listStreams(store, {
      prefix,
      limit,
      ...(after === undefined ? {} : { after }),
    });
    for (const each of page.streams) {
      if ((await namespaces.of(each.stream)) === reach) found.push(each);
    }
    if (page.next === null) return { streams: found, next: null };
    after = page.next;
    if (found.length === options.limit) break;
  }
  return { streams: found, next: after ?? null };
}

/** @throws HttpError 400 for a cursor of another log */
async function listStreams(store: EventStore, options: Parameters<EventStore['listStreams']>[0]) {
  try {
    return await store.listStreams(options);
  } catch (error) {
    if (error instanceof EventStoreError && error.code === 'INVALID_EVENT') throw invalidCursor();
    throw error;
  }
}

/**
 * Events as JSON, and the last event. They are complete, because no other endpoint shows the content of the log.
 * @throws EventStoreError `CORRUPT_EVENT` if the first event cannot be read; a later unreadable event ends the page
 */
async function readEvents(
  store: EventStore,
  stream: string,
  { from, direction, limit }: EventsQuery,
): Promise<{ readonly items: readonly string[]; readonly last: RecordedEvent | undefined }> {
  const items = new ItemList();
  const { json } = items;
  let shown: RecordedEvent | undefined;
  for (let next = from; json.length < limit;) {
    const wanted = Math.min(PAGE, limit - json.length);
    const start = next === undefined ? {} : { from: next };
    const options = { direction, limit: wanted, faulty: true, ...start };
    const part = await store.readStream(stream, options);
    for (const event of part) {
      const isUnreadable = event.fault !== undefined && json.length > 0;
      if (isUnreadable || !items.add(showEvent(requireReadable(event))))
        return { items: json, last: shown };
      shown = event;
    }
    const last = part.at(-1);
    if (last === undefined || part.length < wanted) break;
    next = last.revision + (direction === 'forwards' ? 1 : -1);
    if (next < 0) break;
  }
  return { items: json, last: shown };
}

/** The revision of the next page's first event; null at the end. */
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

async function exists(store: EventStore, stream: string): Promise<boolean> {
  const options = { direction: 'backwards', limit: 1, faulty: true } as const;
  return (await store.readStream(stream, options)).length > 0;
}

const cursorAt = (place: string, prefix: string): string =>
  Buffer.from(JSON.stringify([prefix, place])).toString('base64url');

/** @throws HttpError 400 for a cursor of another prefix */
function placeOf(cursor: string, prefix: string): string {
  try {
    const [given, place] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as unknown[];
    if (given === prefix && typeof place === 'string') return place;
  } catch {
    // Falls through to the error, because the string is not a cursor of this service.
  }
  throw invalidCursor();
}
