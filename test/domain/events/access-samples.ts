import type { DataOf } from '../../../domain/events/catalogue.ts';

type Sampled =
  | 'SessionStarted'
  | 'SessionRefreshed'
  | 'SessionEnded'
  | 'AgentDisabled'
  | 'AgentEnabled'
  | 'ApiKeyCreated'
  | 'ApiKeyRevoked'
  | 'ApiKeyUsed';

/** Samples of the events about disabled agents, API keys and sessions. */
export const accessSamples = (
  at: string,
): { readonly [Type in Sampled]: readonly DataOf<Type>[] } => ({
  AgentDisabled: [{ runs: 'finish' }, { runs: 'cancel' }],
  AgentEnabled: [{ missed: 'skip' }],
  ApiKeyCreated: [
    { agent_id: 'a', name: 'x', scopes: [], expires_at: null, key_hash: 'x' },
    {
      agent_id: 'a',
      name: 'deploy',
      scopes: ['tasks:read'],
      expires_at: at,
      key_hash: 'x',
      namespace: 'sales',
    },
  ],
  ApiKeyRevoked: [{}],
  ApiKeyUsed: [{}],
  SessionStarted: [
    { agent_id: 'a', refresh_id: 'r', expires_at: at, credentials_revision: null },
    { agent_id: 'a', refresh_id: 'r', expires_at: at, credentials_revision: 1 },
  ],
  SessionRefreshed: [{ refresh_id: 's', expires_at: at }],
  SessionEnded: [{ reason: 'revoked' }, { reason: 'reuse' }],
});
