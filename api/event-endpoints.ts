import type { JsonObject } from '../domain/json.ts';
import { publishEvent } from '../domain/publishing.ts';
import { MAX_PUBLISHED_BYTES } from '../domain/topic.ts';
import {
  listeningTasks,
  topicsAnswer,
  topicsProjection,
  type TopicDocument,
} from '../projections/topics.ts';
import { EventPublished, Topics } from './answer-schemas-events.ts';
import { endpoint, type Call, type Endpoint } from './endpoint.ts';
import { HttpError, badRequest, forbidden, unavailable } from './errors.ts';
import { PublishEvent, ReadQuery } from './schemas.ts';

/** How long a publication waits to know the tasks that its agent has just changed. Milliseconds. */
const LIMIT = 2000;
const PAGE = 2000;

const publish = endpoint<PublishEvent>({
  method: 'post',
  paths: ['/events'],
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
      throw new HttpError('payload_too_large', `payload has ${bytes} bytes`, details);
    }
    const source_agent_id = await sourceOf(call);
    await knowOwnTasks(call);
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

const topics = endpoint({
  method: 'get',
  paths: ['/topics', '/events/topics'],
  summary: 'Topics that at least one active task listens to',
  scopes: ['tasks:read'],
  query: ReadQuery,
  reads: [topicsProjection],
  answers: { 200: Topics },
  async handle({ dependencies: { readModel } }) {
    const listening: TopicDocument[] = [];
    let after: string | null = null;
    do {
      const page: readonly { readonly key: string; readonly document: TopicDocument }[] =
        await readModel.find(topicsProjection, {
          filters: listeningTasks,
          sort: [],
          limit: PAGE,
          ...(after === null ? {} : { after: { values: [], key: after } }),
        });
      listening.push(...page.map(({ document }) => document));
      after = page.length < PAGE ? null : (page.at(-1)?.key ?? null);
    } while (after !== null);
    return { body: topicsAnswer(listening) };
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

/** What the caller did before it published counts: a task that it has just created is triggered. */
async function knowOwnTasks({ dependencies, ownPosition }: Call<PublishEvent>): Promise<void> {
  const { topics: index, clock } = dependencies;
  const limit = new AbortController();
  const late = unavailable('projections', 'which tasks listen is not known yet');
  const forget = clock.at(clock.now() + LIMIT, () => limit.abort(late));
  try {
    await index.passed(ownPosition, limit.signal);
  } finally {
    forget();
  }
}
