import { withdrawAdmin } from './admin-withdrawal.ts';
import { agentFold, disableAgent, enableAgent, type AgentState } from './agent.ts';
import type { EventStore } from '../event-store.ts';
import { handle, type CommandContext, type Handled, type SeenRevision } from '../handle.ts';
import { streams } from '../streams.ts';
import type { DisabledRuns, MisfirePolicy } from '../vocabulary.ts';

/**
 * Disables an agent by one append to its stream. All consequences derive from the agent's state, so a process that dies
 * leaves nothing half done. For an admin, an announcement comes first: see {@link withdrawAdmin}.
 * @param command.others ids of agents that may have the scope `admin`
 * @throws RefusalError `NOT_FOUND`; `STATE_CONFLICT` for the last admin
 */
export function disableAgentCommand(command: {
  readonly store: EventStore;
  readonly agentId: string;
  readonly runs: DisabledRuns;
  readonly others: () => AsyncIterable<string>;
  readonly context: CommandContext;
}): Promise<Handled<AgentState>> {
  const { store, agentId, runs, others, context } = command;
  const stream = streams.agent(agentId);
  const decide = (state: AgentState) => disableAgent(state, runs);
  const act = (expectedRevision?: SeenRevision) =>
    handle({ store, stream, fold: agentFold, decide, context, expectedRevision });
  return withdrawAdmin({ store, agentId, others, context, act });
}

/**
 * Enables an agent.
 * @param missed the policy for fires of its tasks that came due while it was disabled
 * @throws RefusalError `NOT_FOUND`
 */
export function enableAgentCommand(
  store: EventStore,
  agentId: string,
  missed: MisfirePolicy,
  context: CommandContext,
): Promise<Handled<AgentState>> {
  const decide = (state: AgentState) => enableAgent(state, missed);
  return handle({ store, stream: streams.agent(agentId), fold: agentFold, decide, context });
}
