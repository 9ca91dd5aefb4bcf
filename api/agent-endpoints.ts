import {
  requireAgent,
  setCredentials,
  agentFold,
  removeAgent,
  type RegisteredAgent,
} from '../domain/agent.ts';
import { registerWithName, release, updateWithName } from '../domain/agent-registration.ts';
import { Refusal } from '../domain/errors.ts';
import { handle } from '../domain/handle.ts';
import { streams } from '../domain/streams.ts';
import { agentFilters, agentsProjection, type AgentDocument } from '../projections/agents.ts';
import { liveTasksOf, tasksProjection } from '../projections/tasks.ts';
import { createdId, endpoint, type Call, type Endpoint } from './endpoint.ts';
import { HttpError, notFound } from './errors.ts';
import {
  AgentQuery,
  CreateAgent,
  ReadQuery,
  RemoveAgentQuery,
  SetCredentials,
  UpdateAgent,
} from './schemas.ts';
import { hashSecret, newSecret } from './secrets.ts';
import { cancelTaskWithRuns } from './task-cancellation.ts';

const scopes = ['admin'] as const;

/** An agent as clients see it. */
export function showAgent(id: string, agent: RegisteredAgent | AgentDocument): object {
  const { name, scopes: granted, webhook_url, created_at, updated_at } = agent;
  return { id, name, scopes: granted, webhook_url, created_at, updated_at };
}

const create = endpoint<CreateAgent>({
  method: 'post',
  paths: ['/agents'],
  summary: 'Registers an agent',
  scopes,
  body: CreateAgent,
  idempotent: true,
  async handle(call) {
    const { dependencies, body, context } = call;
    const id = createdId('agent', call);
    const fields = { name: body.name, scopes: body.scopes, webhook_url: body.webhook_url ?? null };
    const { state, position, revision } = await registerWithName(
      dependencies.store,
      id,
      fields,
      null,
      context,
    );
    return {
      status: 201,
      body: showAgent(id, requireAgent(state)),
      headers: { Location: `/agents/${id}`, ETag: `"${revision}"` },
      position,
    };
  },
});

const list = endpoint<unknown, AgentQuery>({
  method: 'get',
  paths: ['/agents'],
  summary: 'Lists agents, newest first',
  scopes,
  query: AgentQuery,
  reads: [agentsProjection],
  async handle({ dependencies: { readModel }, query }) {
    const filters = agentFilters({ name: query.name_filter, scope: query.scope_filter });
    const { limit, offset } = query;
    const [found, total] = await Promise.all([
      readModel.find(agentsProjection, {
        filters,
        sort: [{ field: 'created_at', direction: 'descending' }],
        limit,
        offset,
      }),
      readModel.count(agentsProjection, filters),
    ]);
    return {
      body: found.map(({ key, document }) => showAgent(key, document)),
      headers: { 'X-Total-Count': String(total) },
    };
  },
});

const read = endpoint({
  method: 'get',
  paths: ['/agents/:agent_id'],
  summary: 'Shows an agent',
  scopes,
  query: ReadQuery,
  reads: [agentsProjection],
  async handle({ dependencies, parameters }) {
    const id = agentId(parameters);
    const kept = await dependencies.readModel.get(agentsProjection, id);
    if (kept === null) throw notFound('agent', id);
    return { body: showAgent(id, kept.document), headers: { ETag: `"${kept.document.revision}"` } };
  },
});

const update = endpoint<UpdateAgent>({
  method: 'put',
  paths: ['/agents/:agent_id'],
  summary: 'Changes an agent',
  scopes,
  body: UpdateAgent,
  async handle({ dependencies, parameters, body, context, expectedRevision }) {
    const id = agentId(parameters);
    const { state, revision, position } = await naming(id, () =>
      updateWithName(dependencies.store, id, body, context, expectedRevision),
    );
    return {
      body: showAgent(id, requireAgent(state)),
      headers: { ETag: `"${revision}"` },
      position,
    };
  },
});

const remove = endpoint<unknown, RemoveAgentQuery>({
  method: 'delete',
  paths: ['/agents/:agent_id'],
  summary: 'Removes an agent; its tokens stop working at once',
  scopes,
  query: RemoveAgentQuery,
  reads: [agentsProjection, tasksProjection],
  async handle(call) {
    const { dependencies, parameters, context, caller, query } = call;
    const { store } = dependencies;
    const id = agentId(parameters);
    const agent = (await dependencies.agents.get(id)).state;
    if (agent.status !== 'registered') throw notFound('agent', id);
    if (id === caller?.agentId) throw conflict('an agent does not remove itself', { agent_id: id });
    if (agent.scopes.includes('admin')) await refuseLastAdmin(call, id);
    await endTasksOf(call, id, query.cancel_tasks);
    const { position } = await handle({
      store,
      stream: streams.agent(id),
      fold: agentFold,
      decide: removeAgent,
      context,
    });
    await release(store, agent.name, id, context);
    const details = { agent_id: id };
    return { body: { success: true, message: 'the agent is removed', details }, position };
  },
});

const credentials = endpoint<SetCredentials | undefined>({
  method: 'post',
  paths: ['/agents/:agent_id/credentials'],
  summary: 'Gives an agent a new secret, shown this once; ends its sessions',
  scopes,
  body: SetCredentials,
  bodyOptional: true,
  async handle({ dependencies, parameters, body, context }) {
    const id = agentId(parameters);
    const secret = body?.agent_secret ?? newSecret();
    const hash = await hashSecret(secret);
    const { position } = await naming(id, () =>
      handle({
        store: dependencies.store,
        stream: streams.agent(id),
        fold: agentFold,
        decide: (state) => setCredentials(state, hash),
        context,
      }),
    );
    const message = 'keep the secret: it is not shown again';
    return { body: { agent_id: id, agent_secret: secret, message }, position };
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

async function refuseLastAdmin(
  { dependencies }: Pick<Call, 'dependencies'>,
  id: string,
): Promise<void> {
  const admins = await dependencies.readModel.find(agentsProjection, {
    filters: agentFilters({ scope: 'admin' }),
    sort: [],
    limit: 2,
  });
  if (admins.some(({ key }) => key !== id)) return;
  throw conflict('the last admin is not removed', { agent_id: id });
}

/** An agent with live tasks stays, unless they are canceled with it. */
async function endTasksOf(
  call: Pick<Call, 'dependencies' | 'context'>,
  id: string,
  cancel: boolean,
): Promise<void> {
  const { readModel } = call.dependencies;
  const filters = liveTasksOf(id);
  const count = await readModel.count(tasksProjection, filters);
  if (count === 0) return;
  if (!cancel) {
    const details = { agent_id: id, live_tasks: count };
    throw conflict(`the agent owns ${count} live tasks`, details);
  }
  for (;;) {
    const tasks = await readModel.find(tasksProjection, { filters, sort: [], limit: 200 });
    let position = null;
    for (const { key } of tasks) ({ position } = await cancelTaskWithRuns(call, key, () => {}));
    if (tasks.length < 200) return;
    if (position !== null) await call.dependencies.positions.wait(tasksProjection, position, 2000);
  }
}

/** Names the agent in a refusal that knows its id no longer. */
async function naming<T>(id: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof Refusal && error.code === 'NOT_FOUND') throw notFound('agent', id);
    throw error;
  }
}

const agentId = (parameters: Readonly<Record<string, string>>): string =>
  (parameters['agent_id'] ?? '').toLowerCase();

const conflict = (message: string, details: Record<string, unknown>): HttpError =>
  new HttpError('conflict', message, details);
