import { withdrawAdmin } from '../../domain/agents/admin-withdrawal.ts';
import { agentFold, removeAgent } from '../../domain/agents/agent.ts';
import { releaseAgentName } from '../../domain/agents/agent-registration.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { handle, type SeenRevision } from '../../domain/handle.ts';
import { mapInBatches } from '../../domain/map-in-batches.ts';
import { streams } from '../../domain/streams.ts';
import { EVERY_NAMESPACE, reaches } from '../../projections/reach.ts';
import { agentFilters, agentsProjection } from '../../projections/views/agents.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { liveTasksOf, tasksProjection } from '../../projections/views/tasks.ts';
import { AgentRemoved } from '../schemas/response-schemas-agents.ts';
import { endpoint, idIn, success, type Call } from '../endpoint.ts';
import { HttpError, notFound } from '../errors.ts';
import { checkAdministers, namespaceAdmin } from '../access/namespace-admins.ts';
import { havePassed, requirePassed } from '../positions.ts';
import { RemoveAgentQuery } from '../schemas/schemas.ts';
import { keyPages } from './listing.ts';
import { cancelRunsOf, cancelTask } from './tasks/task-cancellation.ts';

/** How many tasks are canceled concurrently. Their appends are made durable together. */
const MAX_CONCURRENT = 25;

type Removal = Pick<Call, 'dependencies' | 'context'>;

export const remove = endpoint('DELETE /agents/:agent_id', {
  operationId: 'deleteAgent',
  summary: 'Removes an agent; its tokens stop working at once',
  scopes: ['admin', namespaceAdmin],
  query: RemoveAgentQuery,
  reads: [agentsProjection, tasksProjection],
  responses: { 200: AgentRemoved },
  async handle(call) {
    const { dependencies, context, caller, query } = call;
    const { store, agents } = dependencies;
    const id = idIn(call, 'agent_id');
    const agent = (await agents.get(id)).state;
    if ('namespace' in agent && !reaches(call.reach, agent.namespace)) throw notFound('agent', id);
    if (agent.status !== 'registered') {
      // An earlier process may have died during the removal.
      if (agent.status === 'removed') await cancelRemainingTasks(call, id, await store.head());
      throw notFound('agent', id);
    }
    if (caller !== null) checkAdministers(caller, agent.scopes);
    if (id === caller?.agentId) throw conflict('an agent cannot remove itself', { agent_id: id });
    // Also checked below. This check prevents unnecessary cancellations of tasks.
    if (agent.scopes.includes('admin')) await refuseLastAdmin(call, id);
    await cancelLiveTasks(call, id, query.cancel_tasks);
    const stream = streams.agent(id);
    const handled = await withdrawAdmin({
      store,
      agentId: id,
      others: () => adminsIn(call),
      context,
      act: (expectedRevision?: SeenRevision) =>
        handle({ store, stream, fold: agentFold, decide: removeAgent, context, expectedRevision }),
    });
    agents.learn(id, handled);
    const removedAt = handled.position ?? (await store.head());
    const position = await cancelRemainingTasks(call, id, removedAt);
    await releaseAgentName(store, agent, id, context);
    return success('the agent is removed', { agent_id: id }, position);
  },
});

async function refuseLastAdmin(call: Pick<Call, 'dependencies'>, id: string): Promise<void> {
  for await (const other of adminsIn(call)) if (other !== id) return;
  throw conflict('the last admin cannot be removed', { agent_id: id });
}

/** Ids of the agents that have the scope `admin`, from the view. */
export async function* adminsIn({
  dependencies,
}: Pick<Call, 'dependencies'>): AsyncGenerator<string> {
  const filters = agentFilters(EVERY_NAMESPACE, { scope: 'admin' });
  for await (const page of keyPages(dependencies.readModel, agentsProjection, filters)) {
    yield* page;
  }
}

/**
 * Cancels the agent's live tasks if the caller asks for that.
 * @throws HttpError 409 if the caller does not; 503 if the view lags behind the log's end and may lack a task
 */
async function cancelLiveTasks(call: Removal, id: string, cancel: boolean): Promise<void> {
  const { store, readModel } = call.dependencies;
  await requirePassed(call.dependencies, [tasksProjection], await store.head());
  const count = await readModel.count(tasksProjection, liveTasksOf(id));
  if (count === 0) return;
  if (!cancel) {
    const details = { agent_id: id, live_tasks: count };
    const owned = `${count} live task${count === 1 ? '' : 's'}`;
    throw conflict(`the agent owns ${owned}; ?cancel_tasks=true cancels them with it`, details);
  }
  await cancelTasksOf(call, id);
}

/**
 * Cancels tasks that were created for an agent during its removal. Later ones are canceled by the request that creates
 * them, see `cancelOrphan`.
 * @returns the position of the last event
 */
async function cancelRemainingTasks(
  call: Removal,
  id: string,
  removedAt: Position,
): Promise<Position> {
  const { telemetry } = call.dependencies;
  try {
    await requirePassed(call.dependencies, [tasksProjection], removedAt);
    return (await cancelTasksOf(call, id)) ?? removedAt;
  } catch (error) {
    // The agent is removed nevertheless, and the response says so.
    telemetry.failures.failed('could not check a removed agent for live tasks', error, {
      agent: id,
    });
    return removedAt;
  }
}

/** @returns the position of the last cancellation; null if there was none */
async function cancelTasksOf(call: Removal, id: string): Promise<Position | null> {
  const { readModel } = call.dependencies;
  let end: Position | null = null;
  for await (const page of keyPages(readModel, tasksProjection, liveTasksOf(id))) {
    const canceled = await mapInBatches(page, MAX_CONCURRENT, (key) =>
      cancelTask(call, key, () => {}),
    );
    const [last] = canceled
      .map(({ position }) => position ?? BEGINNING)
      .sort()
      .reverse();
    if (last !== undefined) {
      await havePassed(call.dependencies, [runsProjection], last);
      end = last;
    }
    await mapInBatches(page, MAX_CONCURRENT, (key) => cancelRunsOf(call, key));
  }
  return end;
}

const conflict = (message: string, details: Record<string, unknown>): HttpError =>
  new HttpError('conflict', message, details);
