import type { Position } from '../../../domain/event-store.ts';
import { isUuid } from '../../../domain/ids.ts';
import {
  auditFilters,
  auditProjection,
  isAuditedInLog,
  newestAudited,
  type AuditDocument,
  type AuditFilters,
} from '../../../projections/views/audit.ts';
import { AuditPage } from '../../schemas/response-schemas-audit.ts';
import { eventStream } from '../../schemas/response-schemas.ts';
import { auditScope, recordReading } from './audit-access.ts';
import { matches, namedItem, namesIn, needsScan } from './audit-naming.ts';
import {
  auditOfService,
  scanLimits,
  type AllAuditFilters,
  type AuditStores,
} from './audit-of-service.ts';
import { auditInReach } from './streams-in-reach.ts';
import { auditOfStream } from './audit-of-stream.ts';
import { AuditLiveQuery, AuditQuery } from '../../schemas/audit-schemas.ts';
import { ANONYMOUS, endpoint, type EndpointResponse, type Endpoint } from '../../endpoint.ts';
import { badRequest } from '../../errors.ts';
import { instant, instantsOf } from './instant.ts';
import { ItemList, behindCursor, cursorOf, listJson, readPage } from '../listing.ts';
import { agentOf, openEventStream } from '../../live/live-endpoints.ts';

const SERVICE = 'service';

const list = endpoint('GET /audit', {
  operationId: 'listAudit',
  summary: 'Lists the commands of agents and refused requests, newest first',
  scopes: [auditScope],
  query: AuditQuery,
  hasLargeResponse: true,
  reads: [auditProjection],
  responses: { 200: AuditPage },
  async handle(call) {
    const { dependencies, query } = call;
    const filters: AllAuditFilters = {
      ...query,
      reach: call.reach,
      actor: actorOf(query.actor),
      ...(await instantsOf({ from: query.from, to: query.to }, instant)),
    };
    await recordReading(call);
    const { store, readModel, clock } = dependencies;
    const stores = { store, readModel, clock, names: namesIn(call) };
    const { stream } = filters;
    const isVisible = auditInReach(call);
    if (filters.actor === SERVICE) {
      return { body: await auditOfService({ ...stores, isVisible }, filters, query) };
    }
    if (stream !== undefined && isAuditedInLog(stream)) {
      return { body: await auditOfStream({ ...stores, isVisible }, { ...filters, stream }, query) };
    }
    return needsScan(filters) ? scanView(stores, filters, query) : readView(stores, filters, query);
  },
});

const live = endpoint('GET /audit/live', {
  operationId: 'watchAudit',
  summary: 'Streams commands and refused requests as they happen (server-sent events)',
  scopes: [auditScope],
  query: AuditLiveQuery,
  responses: { 200: eventStream },
  async handle(call) {
    const { dependencies, query } = call;
    const { after: _after, ...filters } = query;
    const actor = actorOf(query.actor);
    if (actor === SERVICE) {
      throw badRequest([{ field: 'actor', issue: `must be an agent; ${SERVICE} is not streamed` }]);
    }
    await recordReading(call);
    return {
      stream: async (streaming) => {
        const { auditTail } = dependencies;
        const open = (): Promise<Position> => auditTail.open();
        const agentId = agentOf(call.caller);
        const client = await openEventStream(dependencies, streaming, { agentId, open });
        if (client === null) return;
        const names = namesIn(call);
        auditTail.join(client, { ...filters, actor }, names, auditInReach(call));
      },
    };
  },
});

export const auditEndpoints: readonly Endpoint[] = [list, live];

/** @throws HttpError 400 for a value that is neither an agent's id nor `service` */
function actorOf(actor: string | undefined): string | undefined {
  if (actor === undefined || actor === SERVICE || actor === ANONYMOUS) return actor;
  if (isUuid(actor)) return actor.toLowerCase();
  throw badRequest([{ field: 'actor', issue: `must be a UUID, ${SERVICE} or ${ANONYMOUS}` }]);
}

async function readView(
  { readModel, names }: AuditStores,
  wanted: AuditFilters,
  { limit, cursor }: AuditQuery,
): Promise<EndpointResponse> {
  const filters = auditFilters(wanted);
  // No index covers more than one equality within a namespace, so counting would read every document that matches the
  // first.
  const equalities = filters.filter(({ op, field }) => op === 'eq' && field !== 'namespace');
  const isCounted = equalities.length <= 1;
  const counted = isCounted ? filters : null;
  const start = behindCursor(cursor, newestAudited, auditProjection);
  const query = { filters, sort: newestAudited, limit, counted, ...start };
  const page = await readPage(readModel, auditProjection, query, (document) =>
    namedItem(document, names),
  );
  const { items, last, hasMore, total, position } = page;
  const next_cursor = hasMore && last ? cursorOf(last, newestAudited) : null;
  return { json: listJson('items', items, { total, next_cursor }), readPosition: position };
}

/**
 * Examines the view's documents one by one, within {@link scanLimits}, for filters without an index. The audit grows
 * only at its newer end, so all pages show the snapshot of the first page.
 */
async function scanView(
  { readModel, clock, names }: AuditStores,
  filters: AllAuditFilters,
  { limit, cursor }: AuditQuery,
): Promise<EndpointResponse> {
  const items = new ItemList();
  let start = behindCursor(cursor, newestAudited, auditProjection);
  let last: { readonly key: string; readonly document: AuditDocument } | undefined;
  let readPosition: Position | undefined;
  const until = clock.steady() + scanLimits.duration;
  const answer = (hasMore: boolean): EndpointResponse => {
    const next_cursor = hasMore && last !== undefined ? cursorOf(last, newestAudited) : null;
    const json = listJson('items', items.json, { total: null, next_cursor });
    return { json, ...(readPosition === undefined ? {} : { readPosition }) };
  };
  for (let examined = 0; ;) {
    const listed = await readModel.list(auditProjection, {
      filters: auditFilters(filters),
      sort: newestAudited,
      limit: scanLimits.page,
      counted: null,
      ...start,
    });
    readPosition ??= listed.position;
    for (const { key, text } of listed.documents) {
      const document = JSON.parse(text) as AuditDocument;
      const item = await namedItem(document, names);
      if (matches(item, filters)) {
        if (items.json.length === limit || !items.add(item)) return answer(true);
      }
      last = { key, document };
    }
    examined += listed.documents.length;
    const isOver = examined >= scanLimits.items || clock.steady() > until;
    if (!listed.hasMore || isOver || last === undefined) return answer(listed.hasMore);
    start = behindCursor(cursorOf(last, newestAudited), newestAudited, auditProjection);
  }
}
