import { withdrawAdmin } from '../../domain/agents/admin-withdrawal.ts';
import {
  agentFold,
  removeAgent,
  requireAgent,
  setCredentials,
  type AgentState,
  type RegisteredAgent,
} from '../../domain/agents/agent.ts';
import {
  registerAgentCommand,
  releaseAgentName,
  updateAgentCommand,
} from '../../domain/agents/agent-registration.ts';
import { hasScope } from '../../domain/agents/scopes.ts';
import { RefusalError } from '../../domain/errors.ts';
import { handle, type Handled, type SeenRevision } from '../../domain/handle.ts';
import { nameBasedId } from '../../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import { requireOpenNamespace } from '../../domain/namespaces/namespace-commands.ts';
import { streams } from '../../domain/streams.ts';
import { reaches } from '../../projections/reach.ts';
import { documentAsOf } from '../../projections/reading/as-of.ts';
import { agentFilters, agentsProjection } from '../../projections/views/agents.ts';
import { Agent, AgentList, Credentials } from '../schemas/response-schemas-agents.ts';
import { createWithinQuota } from '../access/count-quotas.ts';
import { exists } from '../access/present-counts.ts';
import { showAgent } from './agent-records.ts';
import { adminsIn, remove } from './agent-removal.ts';
import { PastQuery, pastAskedFor } from './history/audit-access.ts';
import {
  createdId,
  endpoint,
  etag,
  idIn,
  type Call,
  type EndpointResponse,
  type Endpoint,
} from '../endpoint.ts';
import { forbidden, notFound } from '../errors.ts';
import { administeredAgent, inReach } from './lookup.ts';
import { readPage } from './listing.ts';
import { placeOfReading, viewRefusals } from './history/replay-reading.ts';
import { AgentQuery, CreateAgent, SetCredentials, UpdateAgent } from '../schemas/schemas.ts';
import { checkGrant, namespaceAdmin } from '../access/namespace-admins.ts';
import { hashSecret, newSecret } from '../access/secrets.ts';

const scopes = ['admin', namespaceAdmin] as const;
/** Auditors may read agents, because the log shows the same data. */
const readers = ['admin', namespaceAdmin, 'audit:read'] as const;

function changedAgent(
  id: string,
  { state, revision, position }: Handled<AgentState>,
): EndpointResponse {
  return { body: showAgent(id, requireAgent(state)), headers: etag(revision), position };
}

const create = endpoint('POST /agents', {
  operationId: 'createAgent',
  summary: 'Registers an agent',
  scopes,
  body: CreateAgent,
  idempotent: true,
  responses: { 201: Agent },
  refusals: ['not_found'],
  responseHeaders: ['Location', 'ETag'],
  async handle(call) {
    const { dependencies, body, context, caller } = call;
    const { store, agents } = dependencies;
    const namespace = await namespaceFor(call, body.namespace);
    if (caller !== null) checkGrant(caller, namespace, body.scopes);
    const id = createdId('agent', call);
    const fields = { name: body.name, scopes: body.scopes, webhook_url: body.webhook_url ?? null };
    const handled = await createWithinQuota(
      dependencies,
      { namespace, quota: 'agents', isThere: () => exists(store, streams.agent(id)) },
      () => registerAgentCommand(store, id, fields, null, context, namespace),
    );
    agents.learn(id, handled);
    await removeUnlessOpen(call, id, requireAgent(handled.state));
    const headers = { Location: `/agents/${id}`, ...etag(handled.revision) };
    return { ...changedAgent(id, handled), status: 201, headers };
  },
});

const list = endpoint('GET /agents', {
  operationId: 'listAgents',
  summary: 'Lists agents, newest first',
  scopes: readers,
  query: AgentQuery,
  hasLargeResponse: true,
  reads: [agentsProjection],
  responses: { 200: AgentList },
  refusals: viewRefusals,
  responseHeaders: ['X-Total-Count'],
  async handle(call) {
    const { name_filter, scope_filter, limit, offset } = call.query;
    const { readModel } = (await placeOfReading(call)).dependencies;
    const filters = agentFilters(call.reach, { name: name_filter, scope: scope_filter });
    const sort = [{ field: 'created_at', direction: 'descending' }] as const;
    const query = { filters, sort, limit, offset };
    const page = await readPage(readModel, agentsProjection, query, (agent) =>
      showAgent(agent.id, agent),
    );
    return {
      json: `[${page.items.join(',')}]`,
      headers: { 'X-Total-Count': String(page.total) },
      readPosition: page.position,
    };
  },
});

const read = endpoint('GET /agents/:agent_id', {
  operationId: 'getAgent',
  summary: 'Shows an agent, as it is or as it was',
  description:
    'Every agent may read itself. Others need the scope `admin`, `namespace:admin` or `audit:read`.',
  scopes: [],
  query: PastQuery,
  reads: [agentsProjection],
  responses: { 200: Agent },
  responseHeaders: ['ETag'],
  refusals: ['forbidden'],
  async handle(call) {
    const id = idIn(call, 'agent_id');
    requireReader(call, id);
    const { store, readModel } = call.dependencies;
    const past = await pastAskedFor(call);
    const agent =
      past === null
        ? (await readModel.get(agentsProjection, id))?.document
        : await documentAsOf(store, agentsProjection, streams.agent(id), id, past);
    const known = inReach(call, 'agent', id, agent);
    return { body: showAgent(id, known), headers: etag(known.revision) };
  },
});

const update = endpoint('PUT /agents/:agent_id', {
  operationId: 'updateAgent',
  summary: 'Changes an agent',
  scopes,
  body: UpdateAgent,
  reads: [agentsProjection],
  ifMatch: true,
  responses: { 200: Agent },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, body, context, expectedRevision } = call;
    const { store, agents } = dependencies;
    const id = await administeredAgent(call);
    if (body.scopes !== undefined && call.caller !== null) {
      const { namespace } = requireAgent((await agents.get(id)).state);
      checkGrant(call.caller, namespace, body.scopes);
    }
    const act = (seen?: SeenRevision) => updateAgentCommand(store, id, body, context, seen);
    const staysAdmin = body.scopes?.includes('admin') ?? true;
    const others = () => adminsIn(call);
    const handled = await namingAgent(id, () =>
      staysAdmin
        ? act(expectedRevision)
        : withdrawAdmin({ store, agentId: id, others, context, expectedRevision, act }),
    );
    agents.learn(id, handled);
    return changedAgent(id, handled);
  },
});

const credentials = endpoint('POST /agents/:agent_id/credentials', {
  operationId: 'setAgentCredentials',
  summary: 'Gives an agent a new secret, shown only once, and ends its sessions',
  scopes,
  body: SetCredentials,
  bodyOptional: true,
  responses: { 200: Credentials },
  responseHeaders: ['ETag'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const { store, agents } = dependencies;
    const id = await administeredAgent(call);
    const secret = body?.agent_secret ?? newSecret();
    const hash = await hashSecret(secret);
    const stream = streams.agent(id);
    const decide = (state: AgentState) => setCredentials(state, hash);
    const handled = await namingAgent(id, () =>
      handle({ store, stream, fold: agentFold, decide, context }),
    );
    agents.learn(id, handled);
    const message = 'keep the secret: it is not shown again';
    return {
      body: { agent_id: id, agent_secret: secret, message },
      headers: etag(handled.revision),
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

/** The namespace of a new agent; by default, the caller's namespace. @throws HttpError 404; RefusalError */
async function namespaceFor(
  { caller, dependencies, reach }: Pick<Call, 'caller' | 'dependencies' | 'reach'>,
  asked: string | undefined,
): Promise<string> {
  const namespace = asked ?? caller?.namespace ?? DEFAULT_NAMESPACE;
  if (!reaches(reach, namespace)) throw notFound('namespace', namespace);
  await requireOpenNamespace(dependencies.store, namespace);
  return namespace;
}

/**
 * Removes an agent whose namespace was deleted during its registration.
 * @throws RefusalError if so
 */
export async function removeUnlessOpen(
  { dependencies, context }: Pick<Call, 'dependencies' | 'context'>,
  id: string,
  agent: RegisteredAgent,
): Promise<void> {
  const { store, agents } = dependencies;
  try {
    await requireOpenNamespace(store, agent.namespace);
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    // This needs its own command id, because the command that registered the agent has already appended to its stream.
    const commandId = nameBasedId('remove from a deleted namespace', context.commandId);
    const own = { ...context, commandId };
    const stream = streams.agent(id);
    const decide = (state: AgentState) => (state.status === 'registered' ? removeAgent(state) : []);
    agents.learn(id, await handle({ store, stream, fold: agentFold, decide, context: own }));
    await releaseAgentName(store, agent, id, own);
    throw error;
  }
}

/** @throws HttpError 403 for an agent other than the caller, unless the caller has a scope for that */
function requireReader({ caller }: Pick<Call, 'caller'>, id: string): void {
  if (caller === null || caller.agentId === id) return;
  if (readers.some((scope) => hasScope(caller, scope))) return;
  throw forbidden('this is another agent', readers, caller.scopes);
}

/** Adds the agent's id to a refusal that lacks it. */
async function namingAgent<T>(id: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RefusalError && error.code === 'NOT_FOUND') throw notFound('agent', id);
    throw error;
  }
}
