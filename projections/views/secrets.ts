import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField, namespaceOf } from '../../domain/namespaces/namespace.ts';
import { idOf } from '../../domain/streams.ts';
import type { Filter, Projection, Sort } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';

export type LastUse = JsonObject & {
  readonly at: string;
  readonly version: number | null;
  readonly task_id: string | null;
  readonly run_id: string | null;
};

/** A secret without its value, not even encrypted. */
export type SecretDocument = JsonObject & {
  /** The part of the stream's name after `secret-`. */
  readonly id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly name: string;
  readonly version: number;
  readonly allow_hosts: readonly string[];
  readonly allow_tasks: readonly string[] | null;
  /** null if it never expires. Documents of an older shape lack this field. */
  readonly expires_at?: string | null;
  /** The key that encrypts it. */
  readonly key_id: string;
  readonly created_at: string;
  readonly updated_at: string;
  readonly last_used: LastUse | null;
  /** The revision of its stream's last event, which is its ETag. */
  readonly revision: number;
};

/** All secrets in the log, and their last use. */
export const secretsProjection: Projection<SecretDocument> = {
  name: 'secrets',
  schema: 2,
  // Schema 1 cannot be filtered by expiry.
  readsOlder: [1],
  addedFields: { expires_at: 2 },
  streams: ['secret-', 'uses-'],
  fields: { namespace: 'text', name: 'text', expires_at: 'text' },
  indexes: withinNamespaces([['name'], ['expires_at']]),
  sparse: ['namespace', 'expires_at'],
  keys: (event) => [event.type === 'SecretUsed' ? event.data.secret_id : idOf(event.stream)],
  evolve: evolveSecretDocument,
};

export const secretsByName: readonly Sort[] = [{ field: 'name', direction: 'ascending' }];

/** Sorts before all times, which are compared as strings. */
const FIRST_TIME = '0001';

/** The secrets that expire by an instant (ISO 8601 in the service's format), soonest first. */
export function secretsExpiringBy(until: string): {
  readonly filters: readonly Filter[];
  readonly sort: readonly Sort[];
} {
  return {
    filters: [
      { field: 'expires_at', op: 'gt', value: FIRST_TIME },
      { field: 'expires_at', op: 'lte', value: until },
    ],
    sort: [{ field: 'expires_at', direction: 'ascending' }],
  };
}

function evolveSecretDocument(
  secret: SecretDocument | null,
  event: RecordedEvent,
  id: string,
): SecretDocument | null {
  const { revision } = event;
  const at = event.metadata.occurredAt;
  if (event.type === 'SecretSet') {
    const { name, version, sealed, allow_hosts, allow_tasks, expires_at } = event.data;
    const { created_at = at, last_used = null } = secret ?? {};
    const limits = { allow_hosts, allow_tasks, expires_at };
    const place = namespaceField(namespaceOf(event.data));
    const known = { id, ...place, name, version, ...limits };
    return { ...known, key_id: sealed.key_id, created_at, updated_at: at, last_used, revision };
  }
  if (secret === null) return null;
  switch (event.type) {
    case 'SecretResealed':
      return { ...secret, key_id: event.data.key_id, revision };
    case 'SecretDeleted':
      return null;
    case 'SecretUsed': {
      const { last_at, secret_version: version, task_id, run_id } = event.data;
      // Processes record uses in order, but with different delays.
      if (secret.last_used !== null && secret.last_used.at > last_at) return secret;
      return { ...secret, last_used: { at: last_at, version, task_id, run_id } };
    }
    default:
      return secret;
  }
}
