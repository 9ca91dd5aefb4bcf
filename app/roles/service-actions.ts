import { requireAgent } from '../../domain/agents/agent.ts';
import type { Clock } from '../../domain/clock.ts';
import { Refusal, notFound } from '../../domain/errors.ts';
import { BEGINNING, type EventStore } from '../../domain/event-store.ts';
import type { CommandContext } from '../../domain/handle.ts';
import { publishEvent } from '../../domain/topics/publishing.ts';
import { requestManualRun } from '../../domain/tasks/task-commands.ts';
import type { ActionOrigin, ServiceActions } from '../../scheduler/tools/service-tools.ts';
import type { LiveIndexes } from './live-indexes.ts';

/**
 * What pipelines do to the service itself: as the agent that owns the task, with the scopes that it has now,
 * and by the same commands that the HTTP interface issues.
 */
export function serviceActions(
  store: EventStore,
  { agents, tasks, topics }: LiveIndexes,
  clock: Clock,
): ServiceActions {
  const scopesOf = async (agentId: string, scope: string): Promise<readonly string[]> => {
    const { scopes } = requireAgent((await agents.get(agentId)).state);
    if (scopes.includes(scope) || scopes.includes('admin')) return scopes;
    throw new Refusal('FORBIDDEN', `the task's owner lacks the scope ${scope}`, {
      required_scopes: [scope],
      granted_scopes: scopes,
    });
  };
  return {
    async publishEvent({ topic, payload, ...origin }) {
      await scopesOf(origin.actor, 'events:publish');
      const event = { topic, payload, source_agent_id: origin.actor };
      const context = contextOf(origin, clock);
      // A process that has just started does not know yet who listens.
      await topics.passed(BEGINNING, origin.signal);
      return publishEvent(store, event, topics.matching(topic), context);
    },

    async runTask({ task_id, ...origin }) {
      const scopes = await scopesOf(origin.actor, 'tasks:write');
      const { state } = await tasks.get(task_id);
      if (state.status === 'none') throw notFound('task', task_id);
      if (state.definition.created_by !== origin.actor && !scopes.includes('admin')) {
        throw new Refusal('FORBIDDEN', `task ${task_id} belongs to another agent`);
      }
      const { runId } = await requestManualRun(store, task_id, state, contextOf(origin, clock));
      return { run_id: runId };
    },
  };
}

function contextOf(asked: ActionOrigin, clock: Clock): CommandContext {
  const { actor, causation, commandId, origin } = asked;
  if (origin !== undefined) return { commandId, actor, ...origin, now: clock.now() };
  const { runId, step } = causation;
  return {
    commandId,
    actor,
    source: `run ${runId} step ${step}`,
    correlationId: runId,
    causationId: runId,
    now: clock.now(),
  };
}
