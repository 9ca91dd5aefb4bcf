import type * as Webhooks from '../schemas/response-schemas-webhooks.ts';
import type { DeliveryQuery, ResentQuery } from '../schemas/webhook-schemas.ts';
import type { Api } from './client.ts';

/** Webhooks of agents, and their deliveries. */
export const webhooks = ({ read, readOne, act, actOnPart }: Api) => ({
  newSecret: act<Webhooks.WebhookSecret>('POST', '/agents/:id/webhook-secret'),
  test: act<Webhooks.WebhookSent>('POST', '/agents/:id/webhook-test'),
  deliveries: readOne<Webhooks.WebhookDeliveryPage, DeliveryQuery>(
    '/agents/:id/webhooks/deliveries',
  ),
  resent: read<Webhooks.WebhookDeliveryPage, ResentQuery>('/webhooks/resent'),
  repeat: actOnPart<Webhooks.WebhookSent>('/agents/:id/webhooks/deliveries/:delivery/repeat'),
});
