import { Type, type Static } from '@sinclair/typebox';
import { Nullable, OneOf } from '../../domain/events/schema-parts.ts';
import { webhookEnds, webhookStates, webhookTypes } from '../../domain/vocabulary.ts';
import { count, done, id, listedPayload, pageOf, time, namespace } from './response-schemas.ts';

/** Responses about webhooks. */

const WebhookAttempt = Type.Object(
  {
    at: time,
    attempt: Type.Integer({ minimum: 1, description: 'starts again after a manual repetition' }),
    url: Nullable(Type.String()),
    secret_version: Type.Integer({
      minimum: 0,
      description: 'version of the secret that signed it',
    }),
    status: Type.Union([Type.Integer({ minimum: 100 }), Type.Null()], {
      description: 'null: no response',
    }),
    error: Nullable(Type.String()),
    answer: Type.Union([Type.String(), Type.Null()], {
      description: 'beginning of the response body',
    }),
    took_ms: count,
  },
  { title: 'WebhookAttempt', additionalProperties: false },
);

export const WebhookDelivery = Type.Object(
  {
    id,
    namespace,
    agent_id: id,
    type: OneOf(webhookTypes),
    event_id: Nullable(Type.String()),
    task_id: Nullable(id),
    run_id: Nullable(id),
    payload: listedPayload,
    state: OneOf(webhookStates),
    end: Type.Union([OneOf(webhookEnds), Type.Null()], {
      description: 'for a failed delivery: why it is not tried again',
    }),
    attempts: Type.Array(WebhookAttempt, { description: 'the last 25, newest last' }),
    repeats: count,
    resent_at: Type.Optional(time),
    created_at: time,
    updated_at: time,
    next_attempt_at: Nullable(time),
    finished_at: Nullable(time),
  },
  { title: 'WebhookDelivery', additionalProperties: false },
);
export type WebhookDelivery = Static<typeof WebhookDelivery>;

export const WebhookDeliveryPage = pageOf('WebhookDeliveryPage', WebhookDelivery);
export type WebhookDeliveryPage = Static<typeof WebhookDeliveryPage>;

export const WebhookSecret = Type.Object(
  {
    agent_id: id,
    webhook_secret: Type.String({ pattern: '^whsec_' }),
    version: Type.Integer({ minimum: 1 }),
    message: Type.String(),
  },
  { title: 'WebhookSecret', additionalProperties: false },
);
export type WebhookSecret = Static<typeof WebhookSecret>;

export const WebhookSent = done({
  agent_id: id,
  delivery_id: id,
  state: Type.Literal('pending'),
});
export type WebhookSent = Static<typeof WebhookSent>;
