import type { AgentState } from './agent.ts';
import { TASKS_SCOPE } from './scopes.ts';
import type { PauseCause } from '../vocabulary.ts';

/** Why something may not be done for an agent: `code` for programs, `why` for people. */
export interface Denial {
  readonly code: PauseCause | 'agent_disabled';
  /** A clause such as `agent … is disabled`. */
  readonly why: string;
}

/**
 * Why nothing new may begin for an agent: no fire makes a run, and no run starts.
 * @returns null where it may
 */
export function startDenial(agentId: string, agent: AgentState): Denial | null {
  const denial = ownerDenial(agentId, agent);
  if (denial !== null) return denial;
  return agent.status === 'registered' && agent.disabled !== null ? disabledDenial(agentId) : null;
}

/**
 * Why a run of an agent may do nothing more: call no tool and open no secret. The runs of a disabled agent may finish,
 * unless they are to be canceled.
 * @returns null where it may
 */
export function stepDenial(agentId: string, agent: AgentState): Denial | null {
  const denial = ownerDenial(agentId, agent);
  if (denial !== null) return denial;
  const isStopped = agent.status === 'registered' && agent.disabled?.runs === 'cancel';
  return isStopped ? disabledDenial(agentId) : null;
}

/** A denial as the error of a run or a step. */
export const notPermitted = ({ why }: Denial): string => `not permitted: ${why}`;

/** Why an agent may have no active tasks at all, so that they are paused; null where it may. */
export function ownerDenial(
  agentId: string,
  agent: AgentState,
): (Denial & { readonly code: PauseCause }) | null {
  // Tasks of an agent that this log never had come from elsewhere: there is nothing that it could have lost.
  if (agent.status === 'none' || agent.status === 'abandoned') return null;
  if (agent.status === 'removed') {
    return { code: 'agent_removed', why: `agent ${agentId} was removed` };
  }
  // An agent that never had it owns tasks because an admin has said so.
  if (!agent.lost_tasks_scope) return null;
  return { code: 'scope_lost', why: `agent ${agentId} lost the scope ${TASKS_SCOPE}` };
}

const disabledDenial = (agentId: string): Denial => ({
  code: 'agent_disabled',
  why: `agent ${agentId} is disabled`,
});
