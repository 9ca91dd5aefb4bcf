import { triggeredRunId } from '../../../domain/ids.ts';
import { namespaceField, namespaceOf } from '../../../domain/namespaces/namespace.ts';
import {
  newestPublished,
  publicationQuery,
  publishedProjection,
  recentQuery,
  type PublishedDocument,
} from '../../../projections/views/published.ts';
import {
  EventPage,
  MAX_SHOWN_RUNS,
  PublishedEvent,
} from '../../schemas/response-schemas-events.ts';
import { endpoint, idIn, type Endpoint } from '../../endpoint.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { actorName } from '../agent-names.ts';
import { behindCursor, cursorOf, cutPayload, listJson, readPage } from '../listing.ts';
import { inReach } from '../lookup.ts';
import { EventQuery, ReadQuery } from '../../schemas/schemas.ts';

const list = endpoint('GET /events', {
  operationId: 'listEvents',
  summary: 'Lists published events with the runs that each caused, newest first',
  scopes: ['events:read'],
  query: EventQuery,
  hasLargeResponse: true,
  reads: [publishedProjection],
  responses: { 200: EventPage },
  async handle({ dependencies, query, reach }) {
    const { topic, limit, cursor } = query;
    const asked = { ...recentQuery(reach, topic, limit), counted: null, cut: cutPayload };
    const start = behindCursor(cursor, newestPublished, publishedProjection);
    const { items, last, hasMore, position } = await readPage(
      dependencies.readModel,
      publishedProjection,
      { ...asked, ...start },
      (document) => show(document as PublishedDocument, dependencies),
    );
    const next_cursor = hasMore && last ? cursorOf(last, newestPublished) : null;
    return { json: listJson('items', items, { next_cursor }), readPosition: position };
  },
});

const one = endpoint('GET /events/:event_id', {
  operationId: 'getEvent',
  summary: 'Shows a published event with the runs that it caused',
  scopes: ['events:read'],
  query: ReadQuery,
  reads: [publishedProjection],
  responses: { 200: PublishedEvent },
  async handle(call) {
    const { dependencies, reach } = call;
    const id = idIn(call, 'event_id');
    const [kept] = await dependencies.readModel.find(publishedProjection, publicationQuery(id));
    const document = kept?.document as PublishedDocument | undefined;
    const found = inReach({ reach, own: null }, 'event', id, document);
    return { body: await show(found, dependencies) };
  },
});

export const eventListEndpoints: readonly Endpoint[] = [list, one];

/** The ids of runs derive from the event and the task, so no lookup is needed. */
async function show(
  document: PublishedDocument,
  dependencies: Pick<ApiDependencies, 'agents'>,
): Promise<object> {
  const { event_id, stream_id, topic, payload, source_agent_id, published_at } = document;
  const { triggered_tasks: tasks } = document;
  const place = namespaceField(namespaceOf(document));
  const runs = tasks.slice(0, MAX_SHOWN_RUNS).map((task_id) => ({
    task_id,
    run_id: triggeredRunId(task_id, event_id),
  }));
  const source_agent_name = await actorName(dependencies, source_agent_id);
  const about = { event_id, stream_id, ...place, topic, payload };
  const source = { source_agent_id, source_agent_name, published_at };
  return { ...about, ...source, triggered: tasks.length, runs };
}
