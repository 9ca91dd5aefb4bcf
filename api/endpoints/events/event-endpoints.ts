import type { Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { publishEvent } from '../../../domain/topics/publishing.ts';
import { MAX_PUBLISHED_BYTES } from '../../../domain/topics/topic.ts';
import type { Sort } from '../../../projections/read-model.ts';
import { topicsProjection } from '../../../projections/views/topics.ts';
import { EventPublished, Topics } from '../../schemas/response-schemas-events.ts';
import { publishWithinQuotas } from '../../access/count-quotas.ts';
import { endpoint, success, type Call, type Endpoint } from '../../endpoint.ts';
import { HttpError, badRequest, forbidden, unavailable } from '../../errors.ts';
import { ItemList, behindCursor, cursorOf, listJson } from '../listing.ts';
import { PublishEvent, TopicsQuery } from '../../schemas/schemas.ts';

/** The longest wait of a publication for the latest changes of tasks. Milliseconds. */
const MAX_WAIT = 2000;

/** How many ids of tasks are listed for a pattern. */
const MAX_TASK_IDS = 1000;

const byTopic: readonly Sort[] = [{ field: 'topic', direction: 'ascending' }];

const publish = endpoint('POST /events', {
  operationId: 'publishEvent',
  summary: 'Publishes an event and triggers the tasks that listen to its topic',
  scopes: ['events:publish'],
  body: PublishEvent,
  idempotent: true,
  responses: { 202: EventPublished },
  async handle(call) {
    const { dependencies, body } = call;
    const bytes = Buffer.byteLength(JSON.stringify(body.payload));
    if (bytes > MAX_PUBLISHED_BYTES) {
      const details = { field: 'payload', limit: MAX_PUBLISHED_BYTES };
      const message = `payload: must have at most ${MAX_PUBLISHED_BYTES} bytes, got ${bytes}`;
      throw new HttpError('payload_too_large', message, details);
    }
    const { id: source_agent_id, namespace } = await sourceOf(call);
    await awaitTopics(dependencies, call.ownPosition);
    const { topic, payload } = body;
    const triggered = dependencies.topics.matching(namespace, topic);
    const event = { topic, payload: payload as JsonObject, source_agent_id };
    const context = { ...call.context, namespace, depth: await call.depth('event') };
    const { store } = dependencies;
    const published = await publishWithinQuotas(dependencies, { ...event, namespace }, () =>
      publishEvent(store, event, triggered, context, namespace),
    );
    const { position, ...details } = published;
    return { ...success('the event is published', details, position), status: 202 };
  },
});

const topics = endpoint('GET /topics', {
  aliases: ['/events/topics'],
  operationId: 'listTopics',
  summary: 'Lists the topics that at least one active task listens to, in alphabetical order',
  scopes: ['tasks:read'],
  query: TopicsQuery,
  hasLargeResponse: true,
  reads: [topicsProjection],
  responses: { 200: Topics },
  async handle(call) {
    const { dependencies, query } = call;
    const { limit, offset, cursor, matching } = query;
    const after = behindCursor(cursor, byTopic, { fields: { topic: 'text' } }).after?.key ?? null;
    // The index in memory answers, once it has passed the view's position.
    await awaitTopics(dependencies, await dependencies.readModel.checkpoint(topicsProjection));
    const wanted = { matching, after, limit, offset: after === null ? offset : 0 };
    const page = dependencies.topics.page(call.reach, wanted, MAX_TASK_IDS);
    const items = new ItemList();
    const last = page.topics.filter((topic) => items.add(topic)).at(-1);
    const has_more = page.hasMore || items.json.length < page.topics.length;
    const next_cursor =
      has_more && last !== undefined
        ? cursorOf({ key: last.topic, document: { topic: last.topic } }, byTopic)
        : null;
    const rest = { total_topics: page.total, limit, offset, has_more, next_cursor };
    return { json: listJson('topics', items.json, rest), readPosition: page.position };
  },
});

export const eventEndpoints: readonly Endpoint[] = [publish, topics];

/** An agent publishes as itself, an admin as any existing agent. The event is in that agent's namespace. */
async function sourceOf(
  call: Call<PublishEvent>,
): Promise<{ readonly id: string; readonly namespace: string }> {
  const { caller, dependencies } = call;
  if (caller === null) throw new Error('the endpoint needs a token');
  const source = call.body.source_agent_id.toLowerCase();
  if (source === caller.agentId) return { id: source, namespace: caller.namespace };
  if (!caller.admin) {
    throw forbidden('source_agent_id: must be the caller', ['admin'], caller.scopes);
  }
  const { state } = await dependencies.agents.get(source);
  if (state.status === 'registered') return { id: source, namespace: state.namespace };
  throw badRequest([{ field: 'source_agent_id', issue: 'is not an agent' }]);
}

/** Waits until the index of topics has passed a position. @throws HttpError 503 */
async function awaitTopics(
  { topics: index, clock }: Call['dependencies'],
  position: Position,
): Promise<void> {
  const limit = new AbortController();
  const late = unavailable('projections', 'the index of topics lags behind; try again');
  const forget = clock.after(MAX_WAIT, () => limit.abort(late));
  try {
    await index.passed(position, limit.signal);
  } finally {
    forget();
  }
}
