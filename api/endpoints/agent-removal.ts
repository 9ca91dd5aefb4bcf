import { withdrawAdmin } from '../../domain/agents/admin-withdrawal.ts';
import { agentFold, removeAgent } from '../../domain/agents/agent.ts';
import { release } from '../../domain/agents/agent-registration.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { handle } from '../../domain/handle.ts';
import { sideBySide } from '../../domain/side-by-side.ts';
import { streams } from '../../domain/streams.ts';
import { agentFilters, agentsProjection } from '../../projections/views/agents.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { liveTasksOf, tasksProjection } from '../../projections/views/tasks.ts';
import { AgentRemoved } from '../schemas/answer-schemas-agents.ts';
import { endpoint, idIn, type Call } from '../endpoint.ts';
import { HttpError, notFound } from '../errors.ts';
import { havePassed, untilPassed } from '../positions.ts';
import { RemoveAgentQuery } from '../schemas/schemas.ts';
import { cancelRunsOf, cancelTask } from './tasks/task-cancellation.ts';

const PAGE = 200;

/** Tasks that are canceled at a time: what they append is made durable together. */
const SIDE_BY_SIDE = 25;

export const remove = endpoint<unknown, RemoveAgentQuery>({
  method: 'delete',
  paths: ['/agents/:agent_id'],
  operationId: 'deleteAgent',
  summary: 'Removes an agent; its tokens stop working at once',
  scopes: ['admin'],
  query: RemoveAgentQuery,
  reads: [agentsProjection, tasksProjection],
  answers: { 200: AgentRemoved },
  async handle(call) {
    const { dependencies, context, caller, query } = call;
    const { store, agents } = dependencies;
    const id = idIn(call, 'agent_id');
    const agent = (await agents.get(id)).state;
    if (agent.status !== 'registered') {
      // What a process that died in the midst of it has left.
      if (agent.status === 'removed') await endTasksLeft(call, id, await store.head());
      throw notFound('agent', id);
    }
    if (id === caller?.agentId) throw conflict('an agent does not remove itself', { agent_id: id });
    // Before tasks are canceled in vain; that it stays so is seen to below.
    if (agent.scopes.includes('admin')) await refuseLastAdmin(call, id);
    await endTasksOf(call, id, query.cancel_tasks);
    const handled = await withdrawAdmin({
      ...{ store, agentId: id, others: () => adminsIn(call), context },
      act: (expectedRevision) =>
        handle({
          ...{ store, stream: streams.agent(id), fold: agentFold },
          ...{ decide: removeAgent, context, expectedRevision },
        }),
    });
    agents.learn(id, handled);
    const removedAt = handled.position ?? (await store.head());
    const position = await endTasksLeft(call, id, removedAt);
    await release(store, agent.name, id, context);
    const details = { agent_id: id };
    const body = { success: true, message: 'the agent is removed', details };
    return { body, position };
  },
});

async function refuseLastAdmin(call: Pick<Call, 'dependencies'>, id: string): Promise<void> {
  for await (const other of adminsIn(call)) if (other !== id) return;
  throw conflict('the last admin is not removed', { agent_id: id });
}

/** Ids of the agents that have the scope `admin`, as the view has them. */
export async function* adminsIn({
  dependencies,
}: Pick<Call, 'dependencies'>): AsyncGenerator<string> {
  for (let after: string | null = null; ;) {
    const page: readonly { readonly key: string }[] = await dependencies.readModel.find(
      agentsProjection,
      {
        filters: agentFilters({ scope: 'admin' }),
        sort: [],
        limit: PAGE,
        ...(after === null ? {} : { after: { values: [], key: after } }),
      },
    );
    for (const { key } of page) yield key;
    if (page.length < PAGE) return;
    after = page.at(-1)?.key ?? null;
  }
}

/**
 * An agent with live tasks stays, unless they are canceled with it.
 * @throws HttpError 409; 503 where the view does not come to the log's end: it may lack a task
 */
async function endTasksOf(
  call: Pick<Call, 'dependencies' | 'context'>,
  id: string,
  cancel: boolean,
): Promise<void> {
  const { store, readModel } = call.dependencies;
  await untilPassed(call.dependencies, [tasksProjection], await store.head());
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
 * Cancels what was created for an agent while it was being removed. What comes into the log behind its removal is canceled
 * by whoever creates it, see `cancelOrphan`.
 *
 * @returns the position of the last of all that
 */
async function endTasksLeft(
  call: Pick<Call, 'dependencies' | 'context'>,
  id: string,
  removedAt: Position,
): Promise<Position> {
  const { telemetry } = call.dependencies;
  try {
    await untilPassed(call.dependencies, [tasksProjection], removedAt);
    return (await cancelTasksOf(call, id)) ?? removedAt;
  } catch (error) {
    // It is removed all the same, and said to be.
    telemetry.log.warn('a removed agent may have live tasks: they could not be looked up', {
      ...{ agent: id, error },
    });
    return removedAt;
  }
}

/** @returns the position of the last cancellation; null where there was none */
async function cancelTasksOf(
  call: Pick<Call, 'dependencies' | 'context'>,
  id: string,
): Promise<Position | null> {
  const { readModel } = call.dependencies;
  const filters = liveTasksOf(id);
  // By keys, once through: pages that are asked for anew would come back for as long as the view is behind.
  let after: string | null = null;
  let end: Position | null = null;
  do {
    const page: readonly { readonly key: string }[] = await readModel.find(tasksProjection, {
      filters,
      sort: [],
      limit: PAGE,
      ...(after === null ? {} : { after: { values: [], key: after } }),
    });
    const canceled = await sideBySide(page, SIDE_BY_SIDE, ({ key }) =>
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
    await sideBySide(page, SIDE_BY_SIDE, ({ key }) => cancelRunsOf(call, key));
    after = page.length < PAGE ? null : (page.at(-1)?.key ?? null);
  } while (after !== null);
  return end;
}

const conflict = (message: string, details: Record<string, unknown>): HttpError =>
  new HttpError('conflict', message, details);
