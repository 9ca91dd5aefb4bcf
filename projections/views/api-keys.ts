import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField, namespaceOf } from '../../domain/namespaces/namespace.ts';
import { idOf } from '../../domain/streams.ts';
import type { Filter, Projection } from '../read-model.ts';

/** An API key as the API shows it, without the key or its hash. */
export type ApiKeyDocument = JsonObject & {
  readonly id: string;
  readonly agent_id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly created_at: string;
  /** The agent that created it. */
  readonly created_by: string;
  readonly expires_at: string | null;
  /** The last use, to the minute. */
  readonly last_used_at: string | null;
};

/** All keys that are not revoked. */
export const apiKeysProjection: Projection<ApiKeyDocument> = {
  name: 'apikeys',
  schema: 2,
  // Schema 1 cannot be filtered by namespace or expiry.
  readsOlder: [1],
  addedFields: { namespace: 2, expires_at: 2 },
  streams: ['apikey-', 'apikeyuse-'],
  fields: { namespace: 'text', agent_id: 'text', created_at: 'text', expires_at: 'text' },
  indexes: [['agent_id', 'created_at'], ['expires_at'], ['namespace', 'expires_at']],
  sparse: ['namespace', 'expires_at'],
  keys: (event) => [idOf(event.stream)],
  evolve: evolveApiKey,
};

/** The keys of an agent; sort by `created_at`. */
export function keysOfAgent(agentId: string): readonly Filter[] {
  return [{ field: 'agent_id', op: 'eq', value: agentId }];
}

function evolveApiKey(
  key: ApiKeyDocument | null,
  event: RecordedEvent,
  id: string,
): ApiKeyDocument | null {
  const { occurredAt, actor } = event.metadata;
  switch (event.type) {
    case 'ApiKeyCreated': {
      const { agent_id, name, scopes, expires_at } = event.data;
      const namespace = namespaceField(namespaceOf(event.data));
      const made = { created_at: occurredAt, created_by: actor, expires_at, last_used_at: null };
      return { id, agent_id, ...namespace, name, scopes, ...made };
    }
    case 'ApiKeyUsed': {
      // Processes record uses independently, so they arrive in any order.
      const isNewer = key !== null && occurredAt > (key.last_used_at ?? '');
      return isNewer ? { ...key, last_used_at: occurredAt } : key;
    }
    case 'ApiKeyRevoked':
      return null;
    default:
      return key;
  }
}
