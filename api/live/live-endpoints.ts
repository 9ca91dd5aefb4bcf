import { Type } from '@sinclair/typebox';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { runStates } from '../../domain/vocabulary.ts';
import type { Position } from '../../domain/event-store.ts';
import { eventStream } from '../schemas/response-schemas.ts';
import type { ApiDependencies } from '../dependencies.ts';
import {
  ANONYMOUS,
  endpoint,
  idIn,
  type Caller,
  type Endpoint,
  type Streaming,
} from '../endpoint.ts';
import { EVERY_NAMESPACE } from '../../projections/reach.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { taskWithId } from '../endpoints/lookup.ts';
import { LiveClient, type LiveFilter } from './live-client.ts';
import { checkPosition } from '../positions.ts';
import { ReadQuery, uuid } from '../schemas/schemas.ts';

const scopes = ['runs:read'] as const;

/** Unread bytes of a client; the buffers are shared by all clients. */
const MAX_PENDING = 1024 * 1024;

const LiveQuery = Type.Object({
  namespace: pageParameters.namespace,
  task_id: Type.Optional(uuid),
  state: Type.Optional(OneOf(runStates)),
  ...ReadQuery.properties,
});

const runs = endpoint('GET /runs/live', {
  operationId: 'watchRuns',
  summary: 'Streams every change of runs as it happens (server-sent events)',
  scopes,
  acceptsOwn: true,
  query: LiveQuery,
  responses: { 200: eventStream },
  handle(call) {
    const { dependencies, query } = call;
    const taskId = query.task_id?.toLowerCase();
    const filter = { reach: call.reach, own: call.own, taskId, state: query.state };
    const agentId = agentOf(call.caller);
    return { stream: (streaming) => watch(dependencies, streaming, agentId, filter) };
  },
});

const task = endpoint('GET /tasks/:id/live', {
  operationId: 'watchTaskRuns',
  summary: "Streams every change of a task's runs as it happens (server-sent events)",
  scopes,
  acceptsOwn: true,
  query: Type.Pick(LiveQuery, ['state', 'after']),
  responses: { 200: eventStream },
  async handle(call) {
    const { dependencies, query } = call;
    const taskId = idIn(call, 'id');
    await taskWithId(call, taskId);
    const filter = { reach: call.reach, own: call.own, taskId, state: query.state };
    const agentId = agentOf(call.caller);
    return { stream: (streaming) => watch(dependencies, streaming, agentId, filter) };
  },
});

export const liveEndpoints: readonly Endpoint[] = [runs, task];

async function watch(
  dependencies: ApiDependencies,
  streaming: Streaming,
  agentId: string,
  filter: LiveFilter,
): Promise<void> {
  const { live } = dependencies;
  const open = (): Promise<Position> => live.open();
  const client = await openEventStream(dependencies, streaming, { agentId, open, filter });
  if (client !== null) live.join(client);
}

const noFilter: LiveFilter = {
  reach: EVERY_NAMESPACE,
  own: null,
  taskId: undefined,
  state: undefined,
};

/** The agent to whose limit a stream counts. */
export const agentOf = (caller: Caller | null): string => caller?.agentId ?? ANONYMOUS;

/** A client of a new stream. */
interface Opening {
  readonly agentId: string;
  /** Reserves a place. Resolves with the position at which a new client starts. */
  readonly open: () => Promise<Position>;
  /** Which changes the client gets. Default: all. */
  readonly filter?: LiveFilter;
}

/**
 * Starts a response of server-sent events.
 * @returns the client; null for HEAD
 * @throws HttpError 400 for a `Last-Event-ID` that is not a position of this log, 429 if the agent has too many
 *   streams, and errors of `open`
 */
export async function openEventStream(
  { store, clock, live, settings }: Pick<ApiDependencies, 'store' | 'clock' | 'live' | 'settings'>,
  { request, response, stillAdmitted }: Streaming,
  { agentId, open, filter = noFilter }: Opening,
): Promise<LiveClient | null> {
  const giveBack = live.places.take(agentId, settings.sharing.liveStreamsPerAgent);
  // The client may have left already.
  if (response.closed) giveBack();
  else response.once('close', giveBack);
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
