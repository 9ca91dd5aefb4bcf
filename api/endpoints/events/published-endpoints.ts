import { toIso } from '../../../domain/clock.ts';
import { trimTopic, type Trimmed } from '../../../domain/topics/topic-trimming.ts';
import {
  olderTopics,
  publishedProjection,
  recentQuery,
  type PublishedDocument,
  type TopicExtentDocument,
} from '../../../projections/views/published.ts';
import type { KeptDocument } from '../../../projections/read-model.ts';
import { EventsRemoved, RecentEvents } from '../../schemas/answer-schemas-events.ts';
import { endpoint, type Call, type Endpoint } from '../../endpoint.ts';
import { cutPayload, listText, readPage } from '../listing.ts';
import { CleanupQuery, RecentQuery } from '../../schemas/schemas.ts';

/** Topics trimmed at one time, and for how long one request goes on. Milliseconds. */
const SIDE_BY_SIDE = 16;
const TIME = 30_000;

const HOUR = 3_600_000;

type Kept = KeptDocument<PublishedDocument | TopicExtentDocument>;

const recent = endpoint<unknown, RecentQuery>({
  method: 'get',
  paths: ['/stream/recent', '/events/stream/recent'],
  operationId: 'listRecentEvents',
  summary: 'The latest publications, newest first',
  scopes: ['events:read'],
  query: RecentQuery,
  bulky: true,
  reads: [publishedProjection],
  answers: { 200: RecentEvents },
  async handle(call) {
    const { dependencies, query } = call;
    const { items, hasMore, position } = await readPage(
      dependencies.readModel,
      publishedProjection,
      { ...recentQuery(query.topic, query.count), counted: null, cut: cutPayload },
      (document) => shown(document as PublishedDocument),
    );
    const truncated = hasMore && items.length < query.count;
    const text = listText('events', items, { total_events: items.length, truncated });
    return { body: null, text, readPosition: position };
  },
});

const cleanup = endpoint<unknown, CleanupQuery>({
  method: 'delete',
  paths: ['/stream/cleanup', '/events/stream/cleanup'],
  operationId: 'deleteOldEvents',
  summary: 'Takes older publications away',
  scopes: ['admin'],
  query: CleanupQuery,
  reads: [publishedProjection],
  answers: { 200: EventsRemoved },
  async handle(call) {
    const { max_age_hours } = call.query;
    const cutoff = call.context.now - max_age_hours * HOUR;
    const { deleted, position, complete } = await trimAll(call, cutoff);
    const message = complete
      ? 'older events are gone'
      : 'so many older events are gone; ask again for the rest';
    const details = { deleted_count: deleted, max_age_hours, cutoff: toIso(cutoff), complete };
    // Where nothing was older, how far that is known.
    const { readModel } = call.dependencies;
    return {
      body: { success: true, message, details },
      position: position ?? (await readModel.checkpoint(publishedProjection)),
    };
  },
});

export const publishedEndpoints: readonly Endpoint[] = [recent, cleanup];

function shown(document: PublishedDocument): object {
  const { event_id, stream_id, topic, payload, source_agent_id, published_at, triggered_tasks } =
    document;
  return { event_id, stream_id, topic, payload, source_agent_id, published_at, triggered_tasks };
}

/** Topic by topic, for as long as one request may take: what is left is found by the next one. */
async function trimAll(
  call: Call<unknown, CleanupQuery>,
  cutoff: number,
): Promise<Trimmed & { readonly complete: boolean }> {
  const { store, readModel, clock, requestedUpTo } = call.dependencies;
  const until = clock.steady() + TIME;
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
    const query = olderTopics(toIso(cutoff), SIDE_BY_SIDE, after);
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
    if (page.length < SIDE_BY_SIDE) return { deleted, position, complete: true };
    after = page.at(-1)?.key ?? null;
  }
}
