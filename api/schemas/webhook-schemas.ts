import { Type, type Static } from '@sinclair/typebox';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { webhookStates, webhookTypes } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';

/** Query of `GET /agents/{agent_id}/webhooks/deliveries`. */
export const DeliveryQuery = Type.Object({
  ...pageParameters,
  state: Type.Optional(OneOf(webhookStates)),
  type: Type.Optional(OneOf(webhookTypes)),
});
export type DeliveryQuery = Static<typeof DeliveryQuery>;

/** Query of `GET /webhooks/resent`. */
export const ResentQuery = Type.Object(pageParameters);
export type ResentQuery = Static<typeof ResentQuery>;
