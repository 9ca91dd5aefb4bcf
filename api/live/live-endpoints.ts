import { Type } from '@sinclair/typebox';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { runStates } from '../../domain/vocabulary.ts';
import type { Position } from '../../domain/event-store.ts';
import { eventStream } from '../schemas/response-schemas.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { endpoint, idIn, type Endpoint, type Streaming } from '../endpoint.ts';
import { taskWithId } from '../endpoints/lookup.ts';
import { LiveClient, type LiveFilter } from './live-client.ts';
import { checkPosition } from '../positions.ts';
import { ReadQuery, uuid } from '../schemas/schemas.ts';

const scopes = ['runs:read'] as const;

/** Unread bytes of a client; the buffers are shared by all clients. */
const MAX_PENDING = 1024 * 1024;

const LiveQuery = Type.Object({
  task_id: Type.Optional(uuid),
  state: Type.Optional(OneOf(runStates)),
  ...ReadQuery.properties,
});

const runs = endpoint('GET /runs/live', {
  operationId: 'watchRuns',
  summary: 'Streams every change of runs as it happens (server-sent events)',
  scopes,
  query: LiveQuery,
  responses: { 200: eventStream },
  handle({ dependencies, query }) {
    const filter = { taskId: query.task_id?.toLowerCase(), state: query.state };
    return { stream: (streaming) => watch(dependencies, streaming, filter) };
  },
});

const task = endpoint('GET /tasks/:id/live', {
  operationId: 'watchTaskRuns',
  summary: "Streams every change of a task's runs as it happens (server-sent events)",
  scopes,
  query: Type.Pick(LiveQuery, ['state', 'after']),
  responses: { 200: eventStream },
  async handle(call) {
    const { dependencies, query } = call;
    const taskId = idIn(call, 'id');
    await taskWithId(call, taskId);
    const filter = { taskId, state: query.state };
    return { stream: (streaming) => watch(dependencies, streaming, filter) };
  },
});

export const liveEndpoints: readonly Endpoint[] = [runs, task];

async function watch(
  dependencies: ApiDependencies,
  streaming: Streaming,
  filter: LiveFilter,
): Promise<void> {
  const { live } = dependencies;
  const client = await openEventStream(dependencies, streaming, () => live.open(), filter);
  if (client !== null) live.join(client);
}

const noFilter: LiveFilter = { taskId: undefined, state: undefined };

/**
 * Begins an answer of server-sent events.
 * @param open reserves a place; resolves with the position at which a new client begins
 * @returns the client; null for HEAD
 * @throws HttpError 400 for a `Last-Event-ID` that is no position of this log, and what `open` throws
 */
export async function openEventStream(
  { store, clock }: Pick<ApiDependencies, 'store' | 'clock'>,
  { request, response, stillAdmitted }: Streaming,
  open: () => Promise<Position>,
  filter: LiveFilter = noFilter,
): Promise<LiveClient | null> {
  const given = request.get('last-event-id');
  const after = given === undefined || given === '' ? null : given;
  if (after !== null) await checkPosition(store, 'Last-Event-ID', after);
  const reached = await open();
  response.statusCode = 200;
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Keeps proxies from buffering.
  response.setHeader('X-Accel-Buffering', 'no');
  // The stream lasts until the connection ends; chunks would take three writes instead of one.
  response.removeHeader('Transfer-Encoding');
  response.flushHeaders();
  if (request.method === 'HEAD') {
    response.end();
    return null;
  }
  const options = { response, filter, stillAdmitted, clock, maxPending: MAX_PENDING };
  const client = new LiveClient({ ...options, after: after ?? reached });
  client.begin();
  return client;
}
