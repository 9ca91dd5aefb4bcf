import { Type } from '@sinclair/typebox';
import { event, Id, Timestamp } from './schema-parts.ts';

/** Events of `person-<hash>`: what an identity provider says of a person, and which agent the person is. */
export const personEvents = {
  /** `namespace`: absent in `default`. */
  PersonIdentified: event({
    issuer: Type.String(),
    /** The claim `sub`, which only the issuer gives out, each once. */
    subject: Type.String(),
    agent_id: Id,
    namespace: Type.Optional(Type.String()),
    /** The scopes that the claims give. */
    scopes: Type.Array(Type.String()),
    /** When the issuer made the claims (`iat`). */
    issued_at: Timestamp,
  }),
} as const;
