import { withdrawAdmin } from '../../domain/agents/admin-withdrawal.ts';
import { agentFold, removeAgent } from '../../domain/agents/agent.ts';
import { release } from '../../domain/agents/agent-registration.ts';
import { BEGINNING } from '../../domain/event-store.ts';
import { handle } from '../../domain/handle.ts';
import { sideBySide } from '../../domain/side-by-side.ts';
import { streams } from '../../domain/streams.ts';
import { agentFilters, agentsProjection } from '../../projections/views/agents.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { liveTasksOf, tasksProjection } from '../../projections/views/tasks.ts';
import { AgentRemoved } from '../schemas/answer-schemas-agents.ts';
import { endpoint, idIn, type Call } from '../endpoint.ts';
import { HttpError, notFound } from '../errors.ts';
import { RemoveAgentQuery } from '../schemas/schemas.ts';
import { cancelRunsOf, cancelTask } from './tasks/task-cancellation.ts';

const PAGE = 200;

/** Tasks that are canceled at a time: what they append is made durable together. */
const SIDE_BY_SIDE = 25;

/** How long the view of runs may take to show what the canceled tasks had queued. Milliseconds. */
const LIMIT = 2000;

export const remove = endpoint<unknown, RemoveAgentQuery>({
  method: 'delete',
  paths: ['/agents/:agent_id'],
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
    if (agent.status !== 'registered') throw notFound('agent', id);
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
    await release(store, agent.name, id, context);
    const details = { agent_id: id };
    const body = { success: true, message: 'the agent is removed', details };
    return { body, position: handled.position };
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

/** An agent with live tasks stays, unless they are canceled with it. */
async function endTasksOf(
  call: Pick<Call, 'dependencies' | 'context'>,
  id: string,
  cancel: boolean,
): Promise<void> {
  const { readModel, positions } = call.dependencies;
  const filters = liveTasksOf(id);
  const count = await readModel.count(tasksProjection, filters);
  if (count === 0) return;
  if (!cancel) {
    const details = { agent_id: id, live_tasks: count };
    const owned = `${count} live task${count === 1 ? '' : 's'}`;
    throw conflict(`the agent owns ${owned}; ?cancel_tasks=true cancels them with it`, details);
  }
  // By keys, once through: pages that are asked for anew would come back for as long as the view is behind.
  let after: string | null = null;
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
    if (last !== undefined) await positions.wait(runsProjection, last, LIMIT);
    await sideBySide(page, SIDE_BY_SIDE, ({ key }) => cancelRunsOf(call, key));
    after = page.length < PAGE ? null : (page.at(-1)?.key ?? null);
  } while (after !== null);
}

const conflict = (message: string, details: Record<string, unknown>): HttpError =>
  new HttpError('conflict', message, details);
