import { Type } from '@sinclair/typebox';
import { event, Id, Timestamp } from './schema-parts.ts';

/** Events of `person-<hash>`: an identity provider's claims about a person, and the person's agent. */
export const personEvents = {
  /** `namespace`: absent in `default`. */
  PersonIdentified: event({
    issuer: Type.String(),
    /** The claim `sub`, which the issuer gives to one person only. */
    subject: Type.String(),
    agent_id: Id,
    namespace: Type.Optional(Type.String()),
    /** The scopes that the person gets for their claims. */
    scopes: Type.Array(Type.String()),
    /** When the issuer made the claims (`iat`). */
    issued_at: Timestamp,
  }),
} as const;
