import { Type, type Static } from '@sinclair/typebox';
import { Nullable } from '../../domain/events/schema-parts.ts';
import { namespaceParameter, pageParameters } from '../endpoints/listing.ts';
import { count, done, id, pageOf, time } from './response-schemas.ts';

/** Requests and responses about secrets. */

/** Query of every endpoint of secrets. */
export const SecretScopeQuery = Type.Object({ namespace: namespaceParameter });
export type SecretScopeQuery = Static<typeof SecretScopeQuery>;

/** Query of `GET /secrets`. */
export const SecretQuery = Type.Object({
  ...pageParameters,
  until: Type.Optional(Type.String({ maxLength: 64, description: 'an instant with an offset' })),
});
export type SecretQuery = Static<typeof SecretQuery>;

/** The most characters of a secret. */
const MAX_SECRET_LENGTH = 64 * 1024;

export const SetSecret = Type.Object(
  {
    value: Type.String({ minLength: 1, maxLength: MAX_SECRET_LENGTH, format: 'well-formed' }),
    allow_hosts: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 300 }), { maxItems: 100 }),
    ),
    allow_tasks: Type.Optional(
      Nullable(Type.Array(Type.String({ format: 'uuid' }), { maxItems: 1000 })),
    ),
    expires_at: Type.Optional(Nullable(Type.String({ maxLength: 64 }))),
  },
  { title: 'SetSecret', additionalProperties: false },
);
export type SetSecret = Static<typeof SetSecret>;

const LastUse = Type.Object(
  {
    at: time,
    version: Nullable(Type.Integer({ minimum: 1 })),
    task_id: Nullable(id),
    run_id: Nullable(id),
  },
  { title: 'SecretLastUse', additionalProperties: false },
);

export const Secret = Type.Object(
  {
    name: Type.String(),
    namespace: Type.String(),
    version: Type.Integer({ minimum: 1 }),
    allow_hosts: Type.Array(Type.String()),
    allow_tasks: Nullable(Type.Array(Type.String())),
    expires_at: Nullable(time),
    key_id: Type.String(),
    created_at: time,
    updated_at: time,
    last_used: Nullable(LastUse),
  },
  { title: 'Secret', additionalProperties: false },
);
export type Secret = Static<typeof Secret>;

export const SecretPage = pageOf('SecretPage', Secret);
export type SecretPage = Static<typeof SecretPage>;

export const SecretDeleted = done({ name: Type.String(), namespace: Type.String() });
export type SecretDeleted = Static<typeof SecretDeleted>;

export const SecretKeyRotated = Type.Object(
  {
    key_id: Type.String(),
    generated: Type.Boolean(),
    resealed: count,
    unopened: Type.Array(Type.String()),
  },
  { title: 'SecretKeyRotated', additionalProperties: false },
);
export type SecretKeyRotated = Static<typeof SecretKeyRotated>;
