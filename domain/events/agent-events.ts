import { Type } from '@sinclair/typebox';
import { Id, Nullable, Timestamp, closed } from './schema-parts.ts';

const AgentFields = {
  name: Type.String(),
  scopes: Type.Array(Type.String()),
  webhook_url: Nullable(Type.String()),
};

/**
 * Events of `agent-<id>`; of `agentname-<hash>`, which owns the uniqueness of a name; of `admins`, which owns that one
 * agent keeps the scope `admin`.
 */
export const agentEvents = {
  AgentRegistered: { version: 1, schema: closed(AgentFields) },
  AgentUpdated: { version: 1, schema: closed({ changes: Type.Partial(closed(AgentFields)) }) },
  /** The secret itself is nowhere: only its scrypt hash. Every session begun before it is over. */
  AgentCredentialsSet: { version: 1, schema: closed({ secret_hash: Type.String() }) },
  WebhookSecretRotated: { version: 1, schema: closed({ version: Type.Integer({ minimum: 1 }) }) },
  AgentRemoved: { version: 1, schema: closed({}) },
  NameReserved: { version: 1, schema: closed({ name: Type.String(), agent_id: Id }) },
  NameReleased: { version: 1, schema: closed({ name: Type.String(), agent_id: Id }) },
  /** In a stream that a reservation was made for and that was never begun: nobody may begin it now. */
  Abandoned: { version: 1, schema: closed({ reservation: Type.String() }) },
  /** Who is about to lose the scope `admin`: all of whom that may still be so, each at one revision. */
  AdminWithdrawn: {
    version: 1,
    schema: closed({
      withdrawals: Type.Array(
        closed({ agent_id: Id, revision: Type.Integer({ minimum: 0 }), since: Timestamp }),
      ),
    }),
  },
} as const;

/** Events of `session-<id>`: which refresh token counts. */
export const sessionEvents = {
  SessionStarted: {
    version: 1,
    schema: closed({
      agent_id: Id,
      /** `jti` of the one refresh token that counts. */
      refresh_id: Id,
      expires_at: Type.String(),
      /** Revision of the agent's AgentCredentialsSet; null for an agent without credentials. */
      credentials_revision: Nullable(Type.Integer({ minimum: 0 })),
    }),
  },
  SessionRefreshed: {
    version: 1,
    schema: closed({ refresh_id: Id, expires_at: Type.String() }),
  },
  SessionEnded: {
    version: 1,
    schema: closed({ reason: Type.Union([Type.Literal('revoked'), Type.Literal('reuse')]) }),
  },
} as const;
