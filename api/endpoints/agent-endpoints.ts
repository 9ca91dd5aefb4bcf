import { withdrawAdmin } from '../../domain/agents/admin-withdrawal.ts';
import {
  agentFold,
  requireAgent,
  setCredentials,
  type RegisteredAgent,
} from '../../domain/agents/agent.ts';
import { registerWithName, updateWithName } from '../../domain/agents/agent-registration.ts';
import { Refusal } from '../../domain/errors.ts';
import { handle, type SeenRevision } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import { documentAsOf } from '../../projections/reading/as-of.ts';
import {
  agentFilters,
  agentsProjection,
  type AgentDocument,
} from '../../projections/views/agents.ts';
import { Agent, AgentList, Credentials } from '../schemas/answer-schemas-agents.ts';
import { adminsIn, remove } from './agent-removal.ts';
import { PastQuery, momentAsked } from './history/audit-access.ts';
import { createdId, endpoint, idIn, type Endpoint } from '../endpoint.ts';
import { notFound } from '../errors.ts';
import { readPage } from './listing.ts';
import { placeOfReading, viewRefusals } from './history/replay-reading.ts';
import { AgentQuery, CreateAgent, SetCredentials, UpdateAgent } from '../schemas/schemas.ts';
import { hashSecret, newSecret } from '../access/secrets.ts';

const scopes = ['admin'] as const;
/** Of reads: the log, which auditors may read, says the same. */
const readers = ['admin', 'audit:read'] as const;

/** An agent as clients see it. */
function showAgent(id: string, agent: RegisteredAgent | AgentDocument): object {
  const { name, scopes: granted, webhook_url, created_at, updated_at } = agent;
  return { id, name, scopes: granted, webhook_url, created_at, updated_at };
}

const create = endpoint<CreateAgent>({
  method: 'post',
  paths: ['/agents'],
  operationId: 'createAgent',
  summary: 'Registers an agent',
  scopes,
  body: CreateAgent,
  idempotent: true,
  answers: { 201: Agent },
  answerHeaders: ['Location', 'ETag'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const { store, agents } = dependencies;
    const id = createdId('agent', call);
    const fields = { name: body.name, scopes: body.scopes, webhook_url: body.webhook_url ?? null };
    const handled = await registerWithName(store, id, fields, null, context);
    agents.learn(id, handled);
    return {
      status: 201,
      body: showAgent(id, requireAgent(handled.state)),
      headers: { Location: `/agents/${id}`, ETag: `"${handled.revision}"` },
      position: handled.position,
    };
  },
});

const list = endpoint<unknown, AgentQuery>({
  method: 'get',
  paths: ['/agents'],
  operationId: 'listAgents',
  summary: 'Lists agents, newest first',
  scopes: readers,
  query: AgentQuery,
  bulky: true,
  reads: [agentsProjection],
  answers: { 200: AgentList },
  refusals: viewRefusals,
  answerHeaders: ['X-Total-Count'],
  async handle(call) {
    const { query } = call;
    const { readModel } = (await placeOfReading(call, 'GET /agents')).dependencies;
    const filters = agentFilters({ name: query.name_filter, scope: query.scope_filter });
    const { limit, offset } = query;
    const { items, total, position } = await readPage(
      readModel,
      agentsProjection,
      { filters, sort: [{ field: 'created_at', direction: 'descending' }], limit, offset },
      (agent) => showAgent(agent.id, agent),
    );
    return {
      body: null,
      text: `[${items.join(',')}]`,
      headers: { 'X-Total-Count': String(total) },
      readPosition: position,
    };
  },
});

const read = endpoint<unknown, PastQuery>({
  method: 'get',
  paths: ['/agents/:agent_id'],
  operationId: 'getAgent',
  summary: 'Shows an agent, as it is or as it was',
  scopes: readers,
  query: PastQuery,
  reads: [agentsProjection],
  answers: { 200: Agent },
  answerHeaders: ['ETag'],
  async handle(call) {
    const id = idIn(call, 'agent_id');
    const { store, readModel } = call.dependencies;
    const moment = await momentAsked(call, 'GET /agents/{agent_id}');
    const agent =
      moment === null
        ? (await readModel.get(agentsProjection, id))?.document
        : await documentAsOf(store, agentsProjection, streams.agent(id), id, moment);
    if (!agent) throw notFound('agent', id);
    return { body: showAgent(id, agent), headers: { ETag: `"${agent.revision}"` } };
  },
});

const update = endpoint<UpdateAgent>({
  method: 'put',
  paths: ['/agents/:agent_id'],
  operationId: 'updateAgent',
  summary: 'Changes an agent',
  scopes,
  body: UpdateAgent,
  reads: [agentsProjection],
  ifMatch: true,
  answers: { 200: Agent },
  answerHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, body, context, expectedRevision } = call;
    const { store, agents } = dependencies;
    const id = idIn(call, 'agent_id');
    const change = (seen?: SeenRevision) => updateWithName(store, id, body, context, seen);
    const keeps = body.scopes?.includes('admin') ?? true;
    const taking = { store, agentId: id, others: () => adminsIn(call), context, expectedRevision };
    const handled = await naming(id, () =>
      keeps ? change(expectedRevision) : withdrawAdmin({ ...taking, act: change }),
    );
    agents.learn(id, handled);
    return {
      body: showAgent(id, requireAgent(handled.state)),
      headers: { ETag: `"${handled.revision}"` },
      position: handled.position,
    };
  },
});

const credentials = endpoint<SetCredentials | undefined>({
  method: 'post',
  paths: ['/agents/:agent_id/credentials'],
  operationId: 'setAgentCredentials',
  summary: 'Gives an agent a new secret, shown this once; ends its sessions',
  scopes,
  body: SetCredentials,
  bodyOptional: true,
  answers: { 200: Credentials },
  answerHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const { store, agents } = dependencies;
    const id = idIn(call, 'agent_id');
    const secret = body?.agent_secret ?? newSecret();
    const hash = await hashSecret(secret);
    const handled = await naming(id, () =>
      handle({
        store,
        stream: streams.agent(id),
        fold: agentFold,
        decide: (state) => setCredentials(state, hash),
        context,
      }),
    );
    agents.learn(id, handled);
    const message = 'keep the secret: it is not shown again';
    return {
      body: { agent_id: id, agent_secret: secret, message },
      headers: { ETag: `"${handled.revision}"` },
      position: handled.position,
    };
  },
});

export const agentEndpoints: readonly Endpoint[] = [
  create,
  list,
  read,
  update,
  remove,
  credentials,
];

/** Names the agent in a refusal that knows its id no longer. */
async function naming<T>(id: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'NOT_FOUND') throw notFound('agent', id);
    throw error;
  }
}
