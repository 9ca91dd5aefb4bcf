import { fromIso, type Clock } from '../../../domain/clock.ts';
import {
  BEGINNING,
  EventStoreError,
  type EventStore,
  type Position,
  type RecordedEvent,
} from '../../../domain/event-store.ts';
import { isUuid } from '../../../domain/ids.ts';
import {
  auditDocumentOf,
  auditFilters,
  auditProjection,
  isAuditedInLog,
  newestAudited,
  passes,
  type AuditDocument,
  type AuditFilters,
} from '../../../projections/views/audit.ts';
import { positionAt, SKEW } from '../../../projections/reading/position-at.ts';
import type { Names } from '../../../projections/reading/names.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { AuditPage, type AuditItem } from '../../schemas/answer-schemas-audit.ts';
import { eventStream } from '../../schemas/answer-schemas.ts';
import { auditScope, recordReading } from './audit-access.ts';
import { isLooking, looksLike, namedItem, namesIn, type AuditLooks } from './audit-naming.ts';
import { auditOfStream } from './audit-of-stream.ts';
import { AuditLiveQuery, AuditQuery } from '../../schemas/audit-schemas.ts';
import { endpoint, type Answer, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { instant, instantsOf } from './instant.ts';
import { cursorOf, listText, parseCursor, readPage, Room } from '../listing.ts';
import { openEventStream } from '../../live/live-endpoints.ts';

const SERVICE = 'service';

/** Events that a page looks at for what the service did, at most, and at a time. */
const MOST_EVENTS = 5_000;
const READ = 500;
/** For how long a page is looked for. Milliseconds. */
const LOOKING = 1000;

const list = endpoint<unknown, AuditQuery>({
  method: 'get',
  paths: ['/audit'],
  operationId: 'listAudit',
  summary: 'Tells who did what, and what was refused, newest first',
  scopes: [auditScope],
  query: AuditQuery,
  bulky: true,
  reads: [auditProjection],
  answers: { 200: AuditPage },
  async handle(call) {
    const { dependencies, query } = call;
    const wanted: Wanted = {
      ...query,
      actor: actorOf(query.actor),
      ...(await instantsOf({ from: query.from, to: query.to }, instant)),
    };
    await recordReading(call, 'GET /audit');
    const { store, readModel, clock } = dependencies;
    const parts = { store, readModel, clock, names: namesIn(dependencies) };
    const { stream } = wanted;
    if (wanted.actor === SERVICE) return { body: await byTheService(parts, wanted, query) };
    return stream !== undefined && isAuditedInLog(stream)
      ? { body: await auditOfStream(parts, { ...wanted, stream }, query) }
      : byAgents(parts, wanted, query);
  },
});

const live = endpoint<unknown, AuditLiveQuery>({
  method: 'get',
  paths: ['/audit/live'],
  operationId: 'watchAudit',
  summary: 'Tells who does what as it happens (server-sent events)',
  scopes: [auditScope],
  query: AuditLiveQuery,
  answers: { 200: eventStream },
  async handle(call) {
    const { dependencies, query } = call;
    const { after: _waitedFor, ...filter } = query;
    const actor = actorOf(query.actor);
    if (actor === SERVICE) {
      throw badRequest([
        { field: 'actor', issue: 'must be an agent: the service is not told live' },
      ]);
    }
    await recordReading(call, 'GET /audit/live');
    return {
      body: null,
      stream: async (streaming) => {
        const { auditTail } = dependencies;
        const client = await openEventStream(dependencies, streaming, () => auditTail.open());
        if (client === null) return;
        auditTail.join(client, { ...filter, actor }, namesIn(dependencies));
      },
    };
  },
});

export const auditEndpoints: readonly Endpoint[] = [list, live];

/** @throws HttpError 400 for what is neither an agent's id nor `service` */
function actorOf(actor: string | undefined): string | undefined {
  if (actor === undefined || actor === SERVICE) return actor;
  if (isUuid(actor)) return actor.toLowerCase();
  throw badRequest([{ field: 'actor', issue: `must be a UUID, or ${SERVICE}` }]);
}

type Wanted = AuditFilters & AuditLooks;

interface Parts {
  readonly store: EventStore;
  readonly readModel: ReadModel;
  readonly clock: Pick<Clock, 'steady'>;
  readonly names: Names;
}

/** From the view. */
async function byAgents(parts: Parts, wanted: Wanted, query: AuditQuery): Promise<Answer> {
  if (isLooking(wanted)) return lookedThrough(parts, wanted, query);
  const { readModel, names } = parts;
  const { limit, cursor } = query;
  const filters = auditFilters(wanted);
  const after = cursor === undefined ? null : parseCursor(cursor, newestAudited, auditProjection);
  // More than one equality is on no index: counting would read every document of the first.
  const countable = filters.filter(({ op }) => op === 'eq').length <= 1;
  const read = await readPage(
    readModel,
    auditProjection,
    {
      filters,
      sort: newestAudited,
      limit,
      counted: countable ? filters : null,
      ...(after === null ? {} : { after }),
    },
    (document) => namedItem(document, names),
  );
  const { items, last, hasMore, total, position } = read;
  const next_cursor = hasMore && last ? cursorOf(last, newestAudited) : null;
  const text = listText('items', items, { total, next_cursor });
  return { body: null, text, readPosition: position };
}

/**
 * From the view, where no index finds what is asked: items are looked at one by one, within the same bounds as those of
 * the log. The audit grows at its newer end only, so all pages show what the snapshot of the first one held.
 */
async function lookedThrough(
  { readModel, clock, names }: Parts,
  wanted: Wanted,
  { limit, cursor }: AuditQuery,
): Promise<Answer> {
  const items: string[] = [];
  const room = new Room();
  let after = cursor === undefined ? null : parseCursor(cursor, newestAudited, auditProjection);
  let last: { readonly key: string; readonly document: AuditDocument } | undefined;
  let readPosition: Position | undefined;
  const begun = clock.steady();
  const answer = (hasMore: boolean): Answer => {
    const next_cursor = hasMore && last !== undefined ? cursorOf(last, newestAudited) : null;
    const text = listText('items', items, { total: null, next_cursor });
    return { body: null, text, ...(readPosition === undefined ? {} : { readPosition }) };
  };
  for (let looked = 0; ;) {
    const listed = await readModel.list(auditProjection, {
      filters: auditFilters(wanted),
      sort: newestAudited,
      limit: READ,
      counted: null,
      ...(after === null ? {} : { after }),
    });
    readPosition ??= listed.position;
    for (const { key, text } of listed.documents) {
      const document = JSON.parse(text) as AuditDocument;
      const item = await namedItem(document, names);
      if (looksLike(item, wanted)) {
        const shown = JSON.stringify(item);
        if (items.length === limit || !room.takes(shown)) return answer(true);
        items.push(shown);
      }
      last = { key, document };
    }
    looked += listed.documents.length;
    const isOver = looked >= MOST_EVENTS || clock.steady() - begun > LOOKING;
    if (!listed.hasMore || isOver) return answer(listed.hasMore);
    if (last === undefined) return answer(false);
    after = parseCursor(cursorOf(last, newestAudited), newestAudited, auditProjection);
  }
}

/** Where a page of the log begins, and reads on: by revisions of a stream, or by positions of the whole. */
interface Backwards {
  readonly read: (from: string | undefined) => Promise<readonly RecordedEvent[]>;
  /** What stands before an event. @returns null where nothing does */
  readonly before: (event: RecordedEvent) => string | null;
}

/** What the service did, from the log itself: in the view it would be most of all. Looks at a bounded part of it. */
async function byTheService(
  stores: Parts,
  wanted: Wanted,
  { limit, cursor }: AuditQuery,
): Promise<AuditPage> {
  const { store, names, clock } = stores;
  const { stream, to } = wanted;
  const { read, before } =
    stream === undefined ? log(store, () => endOf(stores, to)) : one(store, stream, to);
  const items: AuditItem[] = [];
  let from: string | null | undefined = cursor;
  const begun = clock.steady();
  for (let looked = 0; looked < MOST_EVENTS && from !== null;) {
    const page = await read(from);
    looked += page.length;
    for (const event of page) {
      from = before(event);
      if (event.fault !== undefined || !passes(event, wanted)) continue;
      const item = await namedItem(auditDocumentOf(event), names);
      if (!looksLike(item, wanted)) continue;
      items.push(item);
      if (items.length === limit) return { items, total: null, next_cursor: from };
    }
    const [newest] = page;
    const past = wanted.from !== undefined && (newest?.metadata.occurredAt ?? '') < wanted.from;
    if (newest === undefined || past) from = null;
    if (clock.steady() - begun > LOOKING) break;
  }
  return { items, total: null, next_cursor: from ?? null };
}

/** One stream, by revisions. @param to of which nothing is wanted that occurred later */
const one = (store: EventStore, stream: string, to: string | undefined): Backwards => ({
  read: async (from) => {
    if (from !== undefined && !/^\d{1,15}$/.test(from)) throw noCursor();
    const options = { direction: 'backwards', limit: READ, faulty: true } as const;
    const begin = from === undefined ? await revisionUpTo(store, stream, to) : Number(from);
    return store.readStream(stream, begin === undefined ? options : { ...options, from: begin });
  },
  before: ({ revision }) => (revision === 0 ? null : String(revision - 1)),
});

/** The whole log, by positions. @param end where the first page begins */
const log = (store: EventStore, end: () => Promise<Position | null>): Backwards => ({
  read: async (from) => {
    const place = from ?? (await end());
    try {
      return await store.readAllBackwards(place, READ);
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'INVALID_EVENT') throw noCursor();
      throw error;
    }
  },
  before: ({ position }) => position,
});

/** Behind all that occurred up to an instant; null for the end of the log. Of what came since, much may be. */
async function endOf(
  stores: Pick<Parts, 'store' | 'readModel'>,
  to: string | undefined,
): Promise<Position | null> {
  if (to === undefined) return null;
  const last = await positionAt(stores, to);
  const [behind] = await stores.store.readAll(last?.position ?? BEGINNING, 1);
  return behind?.position ?? null;
}

/**
 * A revision of a stream behind which nothing occurred up to an instant, by halves; undefined where that is its end. As
 * clocks differ a little, it may lie somewhat later.
 */
async function revisionUpTo(
  store: EventStore,
  stream: string,
  to: string | undefined,
): Promise<number | undefined> {
  if (to === undefined) return undefined;
  const bound = fromIso(to) + SKEW;
  const isLater = ({ metadata, createdAt }: RecordedEvent): boolean =>
    fromIso(metadata.occurredAt ?? createdAt) > bound;
  const end = { direction: 'backwards', limit: 1, faulty: true } as const;
  const [last] = await store.readStream(stream, end);
  if (last === undefined || !isLater(last)) return undefined;
  let [low, high] = [0, last.revision];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [found] = await store.readStream(stream, { from: middle, limit: 1, faulty: true });
    if (found === undefined || isLater(found)) high = middle;
    else low = found.revision + 1;
  }
  return low;
}

const noCursor = (): Error =>
  badRequest([{ field: 'cursor', issue: 'is not a cursor of this list' }]);
