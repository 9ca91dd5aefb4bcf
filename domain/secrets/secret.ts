import type { EventOf } from '../events/catalogue.ts';
import { RefusalError } from '../errors.ts';
import type { Fold } from '../handle.ts';
import { namespaceField, namespaceOf } from '../namespaces/namespace.ts';
import type { SealedValue } from './secret-cipher.ts';

export type SecretEvent = EventOf<'SecretSet' | 'SecretResealed' | 'SecretDeleted'>;

/** The limits of a secret's use: its hosts, its tasks and its expiry. */
export interface SecretLimits {
  readonly allow_hosts: readonly string[];
  /** Null: all tasks of the namespace. */
  readonly allow_tasks: readonly string[] | null;
  /** The time from which no step gets it; null: never. */
  readonly expires_at: string | null;
}

export interface StoredSecret extends SecretLimits {
  readonly status: 'set';
  readonly namespace: string;
  readonly name: string;
  readonly version: number;
  readonly sealed: SealedValue;
  readonly created_at: string;
  readonly updated_at: string;
}

/**
 * A secret of a namespace.
 *
 *   none ──SecretSet──► set ──SecretDeleted──► deleted ──SecretSet──► set (its versions go on)
 */
export type SecretState =
  | { readonly status: 'none'; readonly version: 0 }
  | { readonly status: 'deleted'; readonly version: number }
  | StoredSecret;

export const secretFold: Fold<SecretState, SecretEvent> = {
  initial: { status: 'none', version: 0 },
  namespaceOf: (state) => (state.status === 'set' ? state.namespace : undefined),
  evolve(state, event, { metadata: { occurredAt } }) {
    if (event.type === 'SecretSet') {
      const { data } = event;
      const created_at = state.status === 'set' ? state.created_at : occurredAt;
      const times = { created_at, updated_at: occurredAt };
      return { status: 'set', ...data, namespace: namespaceOf(data), ...times };
    }
    if (state.status !== 'set') return state;
    if (event.type === 'SecretDeleted') return { status: 'deleted', version: state.version };
    const { version, key_id, data_key } = event.data;
    if (version !== state.version) return state;
    return { ...state, sealed: { ...state.sealed, key_id, data_key } };
  },
};

/**
 * The context of an encrypted value, without which it cannot be decrypted. So a person who can write to the log cannot
 * move the value to another name or namespace, widen its use, or postpone its expiry.
 */
export function sealingContext(
  secret: Pick<StoredSecret, 'namespace' | 'name' | 'version'> & SecretLimits,
): string {
  const { namespace, name, version, allow_hosts, allow_tasks, expires_at } = secret;
  // Older secrets are encrypted without an expiry.
  const expiry = expires_at === null ? [] : [expires_at];
  return JSON.stringify([namespace, name, version, allow_hosts, allow_tasks, ...expiry]);
}

/** @param seal encrypts the value for a context */
export function setSecret(
  state: SecretState,
  given: Pick<StoredSecret, 'namespace' | 'name'> & SecretLimits,
  seal: (context: string) => SealedValue,
): readonly SecretEvent[] {
  const version = state.version + 1;
  const { namespace, name, allow_hosts, allow_tasks, expires_at } = given;
  const data = {
    ...namespaceField(namespace),
    name,
    version,
    sealed: seal(sealingContext({ ...given, version })),
    allow_hosts: [...allow_hosts],
    allow_tasks: allow_tasks === null ? null : [...allow_tasks],
    expires_at,
  };
  return [{ type: 'SecretSet', data }];
}

export function deleteSecret(state: SecretState): readonly SecretEvent[] {
  return state.status === 'set' ? [{ type: 'SecretDeleted', data: {} }] : [];
}

/** @param reseal encrypts the data key again with the present key; returns null if that key already encrypts it */
export function resealSecret(
  state: SecretState,
  reseal: (sealed: SealedValue, context: string) => SealedValue | null,
): readonly SecretEvent[] {
  if (state.status !== 'set') return [];
  const sealed = reseal(state.sealed, sealingContext(state));
  if (sealed === null) return [];
  const { key_id, data_key } = sealed;
  return [{ type: 'SecretResealed', data: { version: state.version, key_id, data_key } }];
}

/** @throws RefusalError `NOT_FOUND` for a secret that is not set */
export function requireSecret(state: SecretState, name: string): StoredSecret {
  if (state.status === 'set') return state;
  throw new RefusalError('NOT_FOUND', `there is no secret ${name}`, { name });
}
