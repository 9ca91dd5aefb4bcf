import { Type, type Static } from '@sinclair/typebox';
import { Nullable } from '../../domain/events/schema-parts.ts';
import { pageParameters } from '../endpoints/listing.ts';
import { id, pageOf, time } from './response-schemas.ts';

/** Query and response of `GET /agents/keys`. */

export const ExpiringQuery = Type.Object({
  ...pageParameters,
  until: Type.Optional(Type.String({ maxLength: 64, description: 'an instant with an offset' })),
});
export type ExpiringQuery = Static<typeof ExpiringQuery>;

const ExpiringKey = Type.Object(
  {
    id,
    agent_id: id,
    name: Type.String(),
    expires_at: time,
    last_used_at: Nullable(time),
  },
  { title: 'ExpiringKey', additionalProperties: false },
);
export const ExpiringKeyPage = pageOf('ExpiringKeyPage', ExpiringKey);
export type ExpiringKeyPage = Static<typeof ExpiringKeyPage>;
