import type { AgentState } from '../../domain/agents/agent.ts';
import { startDenial, stepDenial, type Denial } from '../../domain/agents/permissions.ts';
import { fromIso } from '../../domain/clock.ts';
import type { AgentEvent } from '../../domain/events/catalogue.ts';
import type { MissedOrder } from '../../domain/operators/operations.ts';
import type { LiveStreams } from '../../projections/reading/live-streams.ts';

/** A denial, or null. Returned without a promise if the agent is in memory. */
type Denying = Denial | null | Promise<Denial | null>;

/** The present rights of the agents that own tasks. Rejects with errors of the log. */
export interface Owners {
  /** Why nothing new may start for an agent: no fire, no run. */
  startDenial(agentId: string): Denying;
  /** Why a run of an agent may not continue. */
  stepDenial(agentId: string): Denying;
  /** The policy for missed fires that the end of the agent's last disabling set, if the agent is in memory. */
  missedOf(agentId: string): MissedOrder | null;
  /** Whether an agent is known to be disabled or removed, so its workers get no jobs. Checks only agents in memory. */
  isDisabled(agentId: string): boolean;
  /** Calls the listener with each agent that changes, or with null if any agent may have changed. */
  onChange(listener: (agentId: string | null) => void): void;
}

/** Lets every agent do everything, for processes without agents. */
export const anyOwner: Owners = {
  startDenial: () => null,
  stepDenial: () => null,
  missedOf: () => null,
  isDisabled: () => false,
  onChange: () => {},
};

/** The owners according to the log, kept current. */
export class LiveOwners implements Owners {
  readonly #agents: LiveStreams<AgentState, AgentEvent>;

  constructor(agents: LiveStreams<AgentState, AgentEvent>) {
    this.#agents = agents;
  }

  startDenial(agentId: string): Denying {
    return this.#ask(agentId, startDenial);
  }

  stepDenial(agentId: string): Denying {
    return this.#ask(agentId, stepDenial);
  }

  missedOf(agentId: string): MissedOrder | null {
    const agent = this.#agents.peek(agentId)?.state;
    if (agent?.status !== 'registered' || agent.enabled === null) return null;
    return { policy: agent.enabled.missed, upTo: fromIso(agent.enabled.at) };
  }

  isDisabled(agentId: string): boolean {
    const agent = this.#agents.peek(agentId)?.state;
    if (agent === undefined) return false;
    return agent.status === 'removed' || (agent.status === 'registered' && agent.disabled !== null);
  }

  /** Whether nothing may start for an agent, if it is in memory. Otherwise it is loaded for the next call. */
  isStopped(agentId: string): boolean {
    const denying = this.startDenial(agentId);
    if (!(denying instanceof Promise)) return denying !== null;
    // A failure does not matter here, because the check is repeated when the run starts.
    denying.catch(() => {});
    return false;
  }

  onChange(listener: (agentId: string | null) => void): void {
    this.#agents.onChange(listener);
  }

  #ask(agentId: string, rule: typeof startDenial): Denying {
    const loaded = this.#agents.getOrMissing(agentId);
    return loaded instanceof Promise
      ? loaded.then(({ state }) => rule(agentId, state))
      : rule(agentId, loaded.state);
  }
}
