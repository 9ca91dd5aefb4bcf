import { Type } from '@sinclair/typebox';
import { closed, event, Id, Nullable, Timestamp } from './schema-parts.ts';

/** A data key, encrypted with the key-encryption key that its id names. */
const sealedKey = {
  key_id: Type.String(),
  /** In Base64: nonce, encrypted bytes and tag of AES-256-GCM. */
  data_key: Type.String(),
};

/** Events of `secret-<hash>`: a secret of a namespace, encrypted. */
export const secretEvents = {
  /** `namespace`: absent in `default`. */
  SecretSet: event(
    {
      namespace: Type.Optional(Type.String()),
      name: Type.String(),
      version: Type.Integer({ minimum: 1 }),
      sealed: closed({ ...sealedKey, value: Type.String() }),
      allow_hosts: Type.Array(Type.String()),
      /** null: all tasks of the namespace. */
      allow_tasks: Nullable(Type.Array(Id)),
      /** The time from which no step gets it; null: never. */
      expires_at: Nullable(Timestamp),
    },
    2,
  ),
  /** The data key of a version was encrypted with another key. The value stays as it is. */
  SecretResealed: event({ version: Type.Integer({ minimum: 1 }), ...sealedKey }),
  SecretDeleted: event({}),
} as const;

/**
 * Events of `uses-<agent>-<day>`: who used which secret. The first uses of a minute are recorded individually, the
 * others as sums.
 */
export const secretUseEvents = {
  SecretUsed: event({
    agent_id: Id,
    /** Absent in `default`. */
    namespace: Type.Optional(Type.String()),
    /** The part of the stream's name after `secret-`. Secrets of every backend have one. */
    secret_id: Id,
    name: Type.String(),
    /** null if the backend has no versions. */
    secret_version: Nullable(Type.Integer({ minimum: 1 })),
    source: Type.String(),
    /** null: a test message of a webhook. */
    task_id: Nullable(Id),
    run_id: Nullable(Id),
    step: Nullable(Type.String()),
    count: Type.Integer({ minimum: 1 }),
    first_at: Timestamp,
    last_at: Timestamp,
  }),
} as const;
