import { Type, type Static } from '@sinclair/typebox';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { runStates } from '../../domain/vocabulary.ts';
import type { Position } from '../../domain/event-store.ts';
import { eventStream } from '../schemas/answer-schemas.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { endpoint, idIn, type Endpoint, type Streaming } from '../endpoint.ts';
import { notFound } from '../errors.ts';
import { LiveClient, type LiveFilter } from '../client/live-client.ts';
import { checkPosition } from '../positions.ts';
import { ReadQuery, uuid } from '../schemas/schemas.ts';

const scopes = ['runs:read'] as const;

/** Bytes that may wait for a client when the next change comes. What waits is shared by all who wait for it. */
const MOST_PENDING = 1024 * 1024;

const LiveQuery = Type.Object({
  task_id: Type.Optional(uuid),
  state: Type.Optional(OneOf(runStates)),
  ...ReadQuery.properties,
});
type LiveQuery = Static<typeof LiveQuery>;

const runs = endpoint<unknown, LiveQuery>({
  method: 'get',
  paths: ['/runs/live'],
  operationId: 'watchRuns',
  summary: 'Tells of every change of runs as it happens (server-sent events)',
  scopes,
  query: LiveQuery,
  answers: { 200: eventStream },
  handle({ dependencies, query }) {
    const filter = { taskId: query.task_id?.toLowerCase(), state: query.state };
    return { body: null, stream: (streaming) => watch(dependencies, streaming, filter) };
  },
});

const TaskLiveQuery = Type.Pick(LiveQuery, ['state', 'after']);

const task = endpoint<unknown, Pick<LiveQuery, 'state'>>({
  method: 'get',
  paths: ['/tasks/:id/live'],
  operationId: 'watchTaskRuns',
  summary: "Tells of every change of a task's runs as it happens (server-sent events)",
  scopes,
  query: TaskLiveQuery,
  answers: { 200: eventStream },
  async handle(call) {
    const { dependencies, query } = call;
    const taskId = idIn(call, 'id');
    const { state } = await dependencies.tasks.get(taskId);
    if (state.status === 'none') throw notFound('task', taskId);
    const filter = { taskId, state: query.state };
    return { body: null, stream: (streaming) => watch(dependencies, streaming, filter) };
  },
});

/** `/runs/live` before `/runs/:run_id`, which would take it for an id. */
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

/** What asks for the changes of all runs, or of what is no run at all. */
const everything: LiveFilter = { taskId: undefined, state: undefined };

/**
 * Begins an answer of server-sent events.
 *
 * @param open makes sure that there is room; from where a client hears that has not been there before
 * @returns the client, who has been told where it begins; null where only the headers were asked for
 * @throws HttpError 400 for a `Last-Event-ID` that is no position of this log, and what `open` throws
 */
export async function openEventStream(
  { store, clock }: Pick<ApiDependencies, 'store' | 'clock'>,
  { request, response, counts }: Streaming,
  open: () => Promise<Position>,
  filter: LiveFilter = everything,
): Promise<LiveClient | null> {
  const given = request.get('last-event-id');
  const after = given === undefined || given === '' ? null : given;
  if (after !== null) await checkPosition(store, 'Last-Event-ID', after);
  const reached = await open();
  response.statusCode = 200;
  response.setHeader('Content-Type', 'text/event-stream; charset=utf-8');
  // Else a proxy might wait for more before it passes anything on.
  response.setHeader('X-Accel-Buffering', 'no');
  // The stream goes on until the connection ends: chunks would only be three writes in place of one.
  response.removeHeader('Transfer-Encoding');
  response.flushHeaders();
  if (request.method === 'HEAD') {
    response.end();
    return null;
  }
  const options = { response, filter, counts, clock, mostPending: MOST_PENDING };
  const client = new LiveClient({ ...options, after: after ?? reached });
  client.begin();
  return client;
}
