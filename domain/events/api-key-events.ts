import { Type } from '@sinclair/typebox';
import { event, Id, Namespace, Nullable, Timestamp } from './schema-parts.ts';

/** Events of `apikey-<id>`: an API key of an agent. */
export const apiKeyEvents = {
  /** Holds only the key's hash. `namespace`: absent in `default`. */
  ApiKeyCreated: event({
    agent_id: Id,
    name: Type.String(),
    scopes: Type.Array(Type.String()),
    /** Null: the key is valid until it is revoked. */
    expires_at: Nullable(Timestamp),
    key_hash: Type.String(),
    namespace: Namespace,
  }),
  ApiKeyRevoked: event({}),
} as const;

/** Events of `apikeyuse-<id>`: when a key was used last, to the minute. Older ones are truncated. */
export const apiKeyUseEvents = { ApiKeyUsed: event({}) } as const;
