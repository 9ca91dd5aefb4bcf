import type { AgentState } from './agent.ts';
import { TASKS_SCOPE } from './scopes.ts';
import type { PauseCause } from '../vocabulary.ts';

/** Why nothing may be done on behalf of an agent: `code` for programs, `why` for people. */
export interface Denial {
  readonly code: PauseCause | 'agent_disabled';
  /** A clause such as `agent … is disabled`. */
  readonly why: string;
}

/** Why nothing new may start for an agent: no fire requests a run, and no run starts. @returns null if it may */
export function startDenial(agentId: string, agent: AgentState): Denial | null {
  const denial = ownerDenial(agentId, agent);
  if (denial !== null) return denial;
  return agent.status === 'registered' && agent.disabled !== null ? disabledDenial(agentId) : null;
}

/**
 * Why a run of an agent may not continue: it may call no tool and open no secret. The runs of a disabled agent may
 * finish, unless they are to be canceled.
 * @returns null if it may continue
 */
export function stepDenial(agentId: string, agent: AgentState): Denial | null {
  const denial = ownerDenial(agentId, agent);
  if (denial !== null) return denial;
  const isStopped = agent.status === 'registered' && agent.disabled?.runs === 'cancel';
  return isStopped ? disabledDenial(agentId) : null;
}

/** A denial as the error of a run or a step. */
export const notPermitted = ({ why }: Denial): string => `not permitted: ${why}`;

/** Why an agent may have no active tasks, which are therefore paused; null if it may. */
export function ownerDenial(
  agentId: string,
  agent: AgentState,
): (Denial & { readonly code: PauseCause }) | null {
  // An agent that this log does not know never lost a scope here. Its tasks were imported.
  if (agent.status === 'none' || agent.status === 'abandoned') return null;
  if (agent.status === 'removed') {
    return { code: 'agent_removed', why: `agent ${agentId} was removed` };
  }
  // An agent that never had the scope may own tasks, because an admin assigned them.
  if (!agent.lost_tasks_scope) return null;
  return { code: 'scope_lost', why: `agent ${agentId} lost the scope ${TASKS_SCOPE}` };
}

const disabledDenial = (agentId: string): Denial => ({
  code: 'agent_disabled',
  why: `agent ${agentId} is disabled`,
});
