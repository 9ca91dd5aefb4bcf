import { toIso, type Instant } from '../clock.ts';
import type { Resumption } from './run-waits.ts';

/** Allows an agent to decide approvals that name no approvers. */
export const APPROVALS_SCOPE = 'approvals:write';

const SCOPE_PREFIX = 'scope:';

/** The scopes that let an agent decide. @param approvers the approvers of the step; null: it names none */
export function decidingScopes(approvers: readonly string[] | null): readonly string[] {
  if (approvers === null) return [APPROVALS_SCOPE];
  return approvers
    .filter((each) => each.startsWith(SCOPE_PREFIX))
    .map((each) => each.slice(SCOPE_PREFIX.length));
}

/** Whether an agent may decide. @param has whether the agent has a scope; an admin has all */
export function mayDecide(
  approvers: readonly string[] | null,
  agentId: string,
  has: (scope: string) => boolean,
): boolean {
  const isNamed = approvers?.some((each) => each.toLowerCase() === agentId) === true;
  return isNamed || decidingScopes(approvers).some(has);
}

/** The agent that approved or rejected, and its reason. */
export interface Decision {
  readonly approved: boolean;
  readonly agent: { readonly id: string; readonly name: string };
  readonly comment: string | null;
}

/**
 * How a decision ends the wait. A rejection also has a result, which is used if the step continues on errors.
 * @param now the time of the decision
 */
export function decisionEnd({ approved, agent, comment }: Decision, now: Instant): Resumption {
  const result = { approved, by: agent.id, comment, at: toIso(now) };
  const end = { by: { kind: 'approval', agent_id: agent.id }, result } as const;
  if (approved) return end;
  const error = `rejected by ${agent.name}${comment === null ? '' : `: ${comment}`}`;
  return { ...end, error, retryable: false };
}
