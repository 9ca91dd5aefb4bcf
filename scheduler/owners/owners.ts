import type { AgentState } from '../../domain/agents/agent.ts';
import { startDenial, stepDenial, type Denial } from '../../domain/agents/permissions.ts';
import { fromIso } from '../../domain/clock.ts';
import type { AgentEvent } from '../../domain/events/catalogue.ts';
import type { MissedOrder } from '../../domain/operators/operations.ts';
import type { LiveStreams } from '../../projections/reading/live-streams.ts';

/** A denial; null where there is none. At once if the agent is in memory. */
type Denying = Denial | null | Promise<Denial | null>;

/** What the agents that own tasks may do now. Rejects as the log does. */
export interface Owners {
  /** Why nothing new may begin for an agent: no fire, no run. */
  startDenial(agentId: string): Denying;
  /** Why a run of an agent may do nothing more. */
  stepDenial(agentId: string): Denying;
  /** What the end of the agent's last disabling ordered for fires that were due before; as far as it is in memory. */
  missedOf(agentId: string): MissedOrder | null;
  /** Whether an agent is disabled or removed, so that its workers get no jobs; as far as it is in memory. */
  isDisabled(agentId: string): boolean;
  /** Calls the listener with each agent that changes; with null when any may have. */
  onChange(listener: (agentId: string | null) => void): void;
}

/** Every agent may do everything: for processes without agents. */
export const anyOwner: Owners = {
  startDenial: () => null,
  stepDenial: () => null,
  missedOf: () => null,
  isDisabled: () => false,
  onChange: () => {},
};

/** The owners as the log has them, live. */
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

  /** Whether nothing may begin for an agent, as far as it is in memory; else it is loaded, for the next time. */
  isStopped(agentId: string): boolean {
    const denying = this.startDenial(agentId);
    if (!(denying instanceof Promise)) return denying !== null;
    // Whoever needs the answer asks again when the run starts.
    denying.catch(() => {});
    return false;
  }

  onChange(listener: (agentId: string | null) => void): void {
    this.#agents.onChange(listener);
  }

  #ask(agentId: string, rule: typeof startDenial): Denying {
    const loaded = this.#agents.get(agentId);
    return loaded instanceof Promise
      ? loaded.then(({ state }) => rule(agentId, state))
      : rule(agentId, loaded.state);
  }
}
