import {
  publishWithinQuotas,
  requireEventRoom,
  type QuotaParts,
} from '../../api/access/count-quotas.ts';
import { countPayload } from '../../api/access/quota-gate.ts';
import { paramsFor } from '../../api/params/params-check.ts';
import { requireAgent, requireEnabled, type RegisteredAgent } from '../../domain/agents/agent.ts';
import { hasScope } from '../../domain/agents/scopes.ts';
import type { Clock } from '../../domain/clock.ts';
import { RefusalError, notFound } from '../../domain/errors.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { publishEvent } from '../../domain/topics/publishing.ts';
import { requestManualRun } from '../../domain/tasks/task-commands.ts';
import type { CausedKind } from '../../domain/vocabulary.ts';
import type { ActionOrigin, ServiceActions } from '../../scheduler/tools/service-tools.ts';
import type { Causation } from '../causation.ts';
import type { LiveIndexes } from './live-indexes.ts';

/** Commands that pipelines issue, as the HTTP interface does: for the task's owner, with the owner's present scopes. */
export function serviceActions(
  store: EventStore,
  { agents, tasks, topics }: LiveIndexes,
  clock: Clock,
  causation: Pick<Causation, 'depthAfter' | 'present'>,
  quotaParts: QuotaParts,
): ServiceActions {
  const contextOf = async (action: ActionOrigin, what: CausedKind): Promise<CommandContext> => {
    const { actor, commandId, origin } = action;
    const { runId, step } = action.causation;
    // Outside a run, an extension may call the tool during another tool's step.
    const cause = origin === undefined ? { runId } : causation.present;
    const depth = await causation.depthAfter(cause, what);
    const command = { commandId, actor, depth, now: clock.now() };
    if (origin !== undefined) return { ...command, ...origin };
    const source = `run ${runId} step ${step}`;
    return { ...command, source, correlationId: runId, causationId: runId };
  };
  const actorOf = async (agentId: string, scope: string): Promise<RegisteredAgent> => {
    const agent = requireAgent((await agents.get(agentId)).state);
    if (agent.disabled?.runs === 'cancel') requireEnabled(agent);
    const { scopes } = agent;
    if (hasScope(agent, scope)) return agent;
    throw new RefusalError('FORBIDDEN', `the task's owner lacks the scope ${scope}`, {
      required_scopes: [scope],
      granted_scopes: scopes,
    });
  };
  return {
    async publishEvent({ topic, payload, ...origin }) {
      const { namespace } = await actorOf(origin.actor, 'events:publish');
      const event = { topic, payload, source_agent_id: origin.actor };
      const context = await contextOf(origin, 'event');
      // After its start, a process does not know all subscriptions yet.
      await topics.passed(BEGINNING, origin.signal);
      const triggered = topics.matching(namespace, topic);
      return publishWithinQuotas(quotaParts, { ...event, namespace }, () =>
        publishEvent(store, event, triggered, { ...context, namespace }, namespace),
      );
    },

    async runTask({ task_id, params: given, parent, ...origin }) {
      // Runs of a disabled agent may finish, but may not start other runs.
      const actor = requireEnabled(await actorOf(origin.actor, 'tasks:write'));
      const isAdmin = actor.scopes.includes('admin');
      const { state } = await tasks.get(task_id);
      if (state.status === 'none' || !(isAdmin || state.namespace === actor.namespace)) {
        throw notFound('task', task_id);
      }
      if (state.definition.created_by !== origin.actor && !isAdmin) {
        throw new RefusalError('FORBIDDEN', `task ${task_id} belongs to another agent`);
      }
      const params = paramsFor(state.definition, given);
      await requireEventRoom(quotaParts, state.namespace);
      await countPayload(quotaParts, state.namespace, given);
      const context = await contextOf(origin, 'run');
      const asked = { params, parent };
      const { runId } = await requestManualRun(store, task_id, state, context, asked);
      return { run_id: runId };
    },
  };
}
