import { Type } from '@sinclair/typebox';
import { Nullable, OneOf, closed } from '../../domain/events/schema-parts.ts';
import { misfirePolicies } from '../../domain/vocabulary.ts';
import { agentName, done, id, time } from './response-schemas.ts';

/** Responses and bodies of holding and releasing the service. */

const HoldOrder = Type.Object(
  { reason: Type.String(), by: id, by_name: agentName, since: time },
  { title: 'Hold', additionalProperties: false },
);

const Release = Type.Object(
  { by: id, by_name: agentName, at: time, missed: Nullable(OneOf(misfirePolicies)) },
  { title: 'Release', additionalProperties: false },
);

export const Operations = Type.Object(
  { held: Type.Boolean(), hold: Nullable(HoldOrder), released: Nullable(Release) },
  { title: 'Operations', additionalProperties: false },
);

export const Held = done({ held: Type.Literal(true), ...HoldOrder.properties });
export const Released = done({ held: Type.Literal(false), ...Release.properties });

/** Body of `POST /operations/hold`. */
export const HoldBody = closed({
  reason: Type.String({
    minLength: 1,
    maxLength: 1000,
    pattern: String.raw`\S`,
    description: 'a string that is not only spaces',
  }),
});
/** Body of `POST /operations/release`. */
export const ReleaseBody = Type.Partial(
  closed({ missed: OneOf(misfirePolicies), reason: Type.String({ maxLength: 1000 }) }),
);
