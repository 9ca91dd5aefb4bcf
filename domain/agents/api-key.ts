import { hasScope } from './scopes.ts';
import type { RegisteredAgent } from './agent.ts';
import { fromIso, type Instant } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { ApiKeyEvent, DataOf } from '../events/catalogue.ts';
import type { Fold } from '../handle.ts';
import { nameBasedId, tokenHash } from '../ids.ts';
import { namespaceField, namespaceOf } from '../namespaces/namespace.ts';

/** The prefix of every key, by which people and scanners recognise keys. */
export const API_KEY_PREFIX = 'svck_';

/** 32 bytes in base64url. */
const API_KEY = /^svck_[A-Za-z0-9_-]{43}$/;

/**
 * An API key. Its holder can call the service as an agent, with some of the agent's scopes, without signing in.
 *
 * none ──ApiKeyCreated──► active ──ApiKeyRevoked──► revoked
 */
export type ApiKeyState = { readonly status: 'none' } | ApiKey;

export interface ApiKey {
  readonly status: 'active' | 'revoked';
  readonly agent_id: string;
  readonly namespace: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** null if it never expires. */
  readonly expires_at: string | null;
  readonly key_hash: string;
}

/** The fields that the creator of a key chooses. */
export type ApiKeyFields = Pick<ApiKey, 'agent_id' | 'name' | 'scopes' | 'expires_at'>;

export const apiKeyFold: Fold<ApiKeyState, ApiKeyEvent> = {
  initial: { status: 'none' },
  evolve(state, event) {
    if (event.type === 'ApiKeyCreated') {
      return { status: 'active', ...event.data, namespace: namespaceOf(event.data) };
    }
    return state.status === 'none' ? state : { ...state, status: 'revoked' };
  },
};

/** Whether a bearer token has the form of a key. */
export function isApiKey(token: string): boolean {
  return API_KEY.test(token);
}

/** The id of a key. It derives from the key, so that no index is needed; the key cannot be computed from it. */
export function apiKeyId(key: string): string {
  return nameBasedId('api key', key);
}

/**
 * @param key 32 random bytes in base64url after {@link API_KEY_PREFIX}
 * @param namespace the agent's
 */
export function createApiKey(
  state: ApiKeyState,
  key: string,
  { agent_id, name, scopes, expires_at }: ApiKeyFields,
  namespace: string,
): readonly ApiKeyEvent[] {
  if (state.status !== 'none') throw new RefusalError('STATE_CONFLICT', 'the key already exists');
  const data: DataOf<'ApiKeyCreated'> = {
    agent_id,
    name,
    scopes: [...scopes],
    expires_at,
    key_hash: tokenHash(key),
    ...namespaceField(namespace),
  };
  return [{ type: 'ApiKeyCreated', data }];
}

/** Revokes a key. No event if it is already revoked. */
export function revokeApiKey(state: ApiKeyState): readonly ApiKeyEvent[] {
  if (state.status === 'none') throw new RefusalError('NOT_FOUND', 'there is no such key');
  return state.status === 'active' ? [{ type: 'ApiKeyRevoked', data: {} }] : [];
}

/** Whether a key itself is valid at an instant. Its agent must also be registered and enabled. */
export function isValidKey(key: ApiKeyState, now: Instant): key is ApiKey {
  if (key.status !== 'active') return false;
  return key.expires_at === null || fromIso(key.expires_at) > now;
}

/** The scopes that a key has now: those of its own that its agent still has. */
export function scopesOfKey({ scopes }: ApiKey, agent: RegisteredAgent): readonly string[] {
  return scopes.filter((scope) => hasScope(agent, scope));
}
