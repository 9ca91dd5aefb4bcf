import { toIso } from '../../../domain/clock.ts';
import { trimTopic, type Trimmed } from '../../../domain/topics/topic-trimming.ts';
import {
  olderTopics,
  publishedProjection,
  recentQuery,
  type PublishedDocument,
  type TopicExtentDocument,
} from '../../../projections/views/published.ts';
import type { ViewDocument } from '../../../projections/read-model.ts';
import { EventsRemoved, RecentEvents } from '../../schemas/response-schemas-events.ts';
import { endpoint, success, type Call, type Endpoint } from '../../endpoint.ts';
import { cutPayload, listJson, readPage } from '../listing.ts';
import { CleanupQuery, RecentQuery } from '../../schemas/schemas.ts';

/** Topics that are trimmed concurrently. */
const MAX_CONCURRENT = 16;
/** How long one request may trim. Milliseconds. */
const MAX_DURATION = 30_000;

const HOUR = 3_600_000;

type Kept = ViewDocument<PublishedDocument | TopicExtentDocument>;

const recent = endpoint('GET /stream/recent', {
  aliases: ['/events/stream/recent'],
  operationId: 'listRecentEvents',
  summary: 'Lists the latest published events, newest first',
  scopes: ['events:read'],
  query: RecentQuery,
  hasLargeResponse: true,
  reads: [publishedProjection],
  responses: { 200: RecentEvents },
  async handle(call) {
    const { dependencies, query } = call;
    const { items, hasMore, position } = await readPage(
      dependencies.readModel,
      publishedProjection,
      { ...recentQuery(call.reach, query.topic, query.count), counted: null, cut: cutPayload },
      (document) => show(document as PublishedDocument),
    );
    const truncated = hasMore && items.length < query.count;
    const json = listJson('events', items, { total_events: items.length, truncated });
    return { json, readPosition: position };
  },
});

const cleanup = endpoint('DELETE /stream/cleanup', {
  aliases: ['/events/stream/cleanup'],
  operationId: 'deleteOldEvents',
  summary: 'Deletes older published events',
  scopes: ['admin'],
  query: CleanupQuery,
  reads: [publishedProjection],
  responses: { 200: EventsRemoved },
  async handle(call) {
    const { max_age_hours } = call.query;
    const cutoff = call.context.now - max_age_hours * HOUR;
    const { deleted, position, complete } = await trimAll(call, cutoff);
    const message = complete
      ? 'older events are deleted'
      : 'some older events are deleted; repeat the request for the rest';
    const details = { deleted_count: deleted, max_age_hours, cutoff: toIso(cutoff), complete };
    // If no event was deleted: the position up to which no event was older.
    const { readModel } = call.dependencies;
    return success(message, details, position ?? (await readModel.checkpoint(publishedProjection)));
  },
});

export const publishedEndpoints: readonly Endpoint[] = [recent, cleanup];

function show(document: PublishedDocument): object {
  const { event_id, stream_id, topic, payload, source_agent_id, published_at, triggered_tasks } =
    document;
  return { event_id, stream_id, topic, payload, source_agent_id, published_at, triggered_tasks };
}

/** Trims topic by topic until the time is over. The next request finds the remaining topics. */
async function trimAll(
  call: Call<unknown, CleanupQuery>,
  cutoff: number,
): Promise<Trimmed & { readonly complete: boolean }> {
  const { store, readModel, clock, requestedUpTo } = call.dependencies;
  const until = clock.steady() + MAX_DURATION;
  const [requestedTo, knownUpTo] = await Promise.all([
    requestedUpTo(),
    readModel.checkpoint(publishedProjection),
  ]);
  const upTo = { knownUpTo, requestedUpTo: requestedTo };
  let deleted = 0;
  let position: Trimmed['position'] = null;
  let after: string | null = null;
  for (;;) {
    if (clock.steady() > until) return { deleted, position, complete: false };
    const query = olderTopics(call.reach, toIso(cutoff), MAX_CONCURRENT, after);
    const page: readonly Kept[] = await readModel.find(publishedProjection, query);
    const trimmed = await Promise.all(
      page.map(async ({ document }): Promise<Trimmed> =>
        document.listed
          ? { deleted: 0, position: null }
          : trimTopic(store, document, cutoff, upTo, call.context),
      ),
    );
    for (const each of trimmed) {
      deleted += each.deleted;
      if (each.position !== null && each.position > (position ?? '')) position = each.position;
    }
    if (page.length < MAX_CONCURRENT) return { deleted, position, complete: true };
    after = page.at(-1)?.key ?? null;
  }
}
