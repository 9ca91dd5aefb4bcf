import { Type } from '@sinclair/typebox';
import { disabledRuns, misfirePolicies } from '../vocabulary.ts';
import { closed, event, Id, Namespace, Nullable, OneOf, Timestamp } from './schema-parts.ts';

const AgentFields = {
  name: Type.String(),
  scopes: Type.Array(Type.String()),
  webhook_url: Nullable(Type.String()),
};

/**
 * Events of `agent-<id>`; of `agentname-<hash>`, which makes a name unique; and of `admins`, which ensures that one
 * agent keeps the scope `admin`.
 */
export const agentEvents = {
  AgentRegistered: event({ ...AgentFields, namespace: Namespace }, 2),
  AgentUpdated: event({ changes: Type.Partial(closed(AgentFields)) }),
  /** Holds only the secret's scrypt hash. Ends every earlier session. */
  AgentCredentialsSet: event({ secret_hash: Type.String() }),
  WebhookSecretRotated: event({ version: Type.Integer({ minimum: 1 }) }),
  /** Ends every earlier session. Nothing may act for the agent. `runs`: what happens to its runs. */
  AgentDisabled: event({ runs: OneOf(disabledRuns) }),
  /** `missed`: the policy for fires of its tasks that came due while it was disabled. */
  AgentEnabled: event({ missed: OneOf(misfirePolicies) }),
  AgentRemoved: event({}),
  NameReserved: event({ name: Type.String(), agent_id: Id }),
  NameReleased: event({ name: Type.String(), agent_id: Id }),
  /** Closes a stream that was reserved but never begun. */
  Abandoned: event({ reservation: Type.String() }),
  /** The agents that are about to lose the scope `admin`, each at one revision. */
  AdminWithdrawn: event({
    withdrawals: Type.Array(
      closed({ agent_id: Id, revision: Type.Integer({ minimum: 0 }), since: Timestamp }),
    ),
  }),
} as const;

/** Events of `session-<id>`: which refresh token is valid. */
export const sessionEvents = {
  SessionStarted: event({
    agent_id: Id,
    /** `jti` of the valid refresh token. */
    refresh_id: Id,
    expires_at: Type.String(),
    /** Revision of the agent's last AgentCredentialsSet or AgentDisabled; null if it has neither. */
    credentials_revision: Nullable(Type.Integer({ minimum: 0 })),
  }),
  SessionRefreshed: event({ refresh_id: Id, expires_at: Type.String() }),
  SessionEnded: event({ reason: Type.Union([Type.Literal('revoked'), Type.Literal('reuse')]) }),
} as const;
