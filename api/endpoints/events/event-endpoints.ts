import type { Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { MAX_PUBLISHED_BYTES } from '../../../domain/topics/topic.ts';
import type { Sort } from '../../../projections/read-model.ts';
import { topicsProjection } from '../../../projections/views/topics.ts';
import { EventPublished, Topics } from '../../schemas/answer-schemas-events.ts';
import { endpoint, type Call, type Endpoint } from '../../endpoint.ts';
import { HttpError, badRequest, forbidden, unavailable } from '../../errors.ts';
import { cursorOf, fitting, listText, parseCursor } from '../listing.ts';
import { PublishEvent, TopicsQuery } from '../../schemas/schemas.ts';

/** How long it is waited to know the tasks that were just changed. Milliseconds. */
const LIMIT = 2000;

/** Most ids of the tasks that listen to a pattern. */
const MOST_IDS = 1000;

const byTopic: readonly Sort[] = [{ field: 'topic', direction: 'ascending' }];

const publish = endpoint<PublishEvent>({
  method: 'post',
  paths: ['/events'],
  operationId: 'publishEvent',
  summary: 'Publishes an event; the tasks that listen to its topic are triggered',
  scopes: ['events:publish'],
  body: PublishEvent,
  idempotent: true,
  answers: { 202: EventPublished },
  async handle(call) {
    const { dependencies, body, context } = call;
    const bytes = Buffer.byteLength(JSON.stringify(body.payload));
    if (bytes > MAX_PUBLISHED_BYTES) {
      const details = { field: 'payload', limit: MAX_PUBLISHED_BYTES };
      const message = `payload has ${bytes} bytes; it may have ${MAX_PUBLISHED_BYTES}`;
      throw new HttpError('payload_too_large', message, details);
    }
    const source_agent_id = await sourceOf(call);
    await knowTasks(dependencies, call.ownPosition);
    const { topic, payload } = body;
    const triggered = dependencies.topics.matching(topic);
    const event = { topic, payload: payload as JsonObject, source_agent_id };
    const published = await publishEvent(dependencies.store, event, triggered, context);
    const { position, ...details } = published;
    return {
      status: 202,
      body: { success: true, message: 'the event is published', details },
      position,
    };
  },
});

const topics = endpoint<unknown, TopicsQuery>({
  method: 'get',
  paths: ['/topics', '/events/topics'],
  operationId: 'listTopics',
  summary: 'Topics that at least one active task listens to, in order of their text',
  scopes: ['tasks:read'],
  query: TopicsQuery,
  bulky: true,
  reads: [topicsProjection],
  answers: { 200: Topics },
  async handle({ dependencies, query }) {
    const { limit, offset, cursor } = query;
    const after =
      cursor === undefined ? null : parseCursor(cursor, byTopic, { fields: { topic: 'text' } }).key;
    // What the view has passed is promised already; who listens is known in memory, without reading them all.
    await knowTasks(dependencies, await dependencies.readModel.checkpoint(topicsProjection));
    const place = { after, limit, offset: after === null ? offset : 0 };
    const page = dependencies.topics.page(place, MOST_IDS);
    const items = fitting(page.topics);
    const last = page.topics[items.length - 1];
    const has_more = page.hasMore || items.length < page.topics.length;
    const next_cursor =
      has_more && last !== undefined
        ? cursorOf({ key: last.topic, document: { topic: last.topic } }, byTopic)
        : null;
    const rest = { total_topics: page.total, limit, offset, has_more, next_cursor };
    return { body: null, text: listText('topics', items, rest), readPosition: page.position };
  },
});

export const eventEndpoints: readonly Endpoint[] = [publish, topics];

/** An agent publishes as itself; an admin as any agent that exists. */
async function sourceOf(call: Call<PublishEvent>): Promise<string> {
  const { caller, dependencies } = call;
  const source = call.body.source_agent_id.toLowerCase();
  if (caller === null || source === caller.agentId) return source;
  if (!caller.admin)
    throw forbidden('source_agent_id must be the caller', ['admin'], caller.scopes);
  const { state } = await dependencies.agents.get(source);
  if (state.status === 'registered') return source;
  throw badRequest([{ field: 'source_agent_id', issue: 'is not an agent' }]);
}

/** What was done up to a position counts: a task that was just created is known to listen. */
async function knowTasks(
  { topics: index, clock }: Call['dependencies'],
  position: Position,
): Promise<void> {
  const limit = new AbortController();
  const late = unavailable('projections', 'which tasks listen is not known yet');
  const forget = clock.after(LIMIT, () => limit.abort(late));
  try {
    await index.passed(position, limit.signal);
  } finally {
    forget();
  }
}
