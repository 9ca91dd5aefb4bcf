import { Type } from '@sinclair/typebox';
import { webhookEnds, webhookTypes } from '../vocabulary.ts';
import { AnyObject, Id, Nullable, OneOf, Timestamp, closed } from './schema-parts.ts';

/** What is said of every attempt. The secret is nowhere: only which version of it signed. */
const attempt = {
  /** Counts from 1 in each round. */
  attempt: Type.Integer({ minimum: 1 }),
  secret_version: Type.Integer({ minimum: 0 }),
  took_ms: Type.Integer({ minimum: 0 }),
};

/** Events of `webhook-<id>`: one delivery to an agent's webhook, through all its attempts. */
export const webhookEvents = {
  WebhookScheduled: {
    version: 1,
    schema: closed({
      agent_id: Id,
      /** The event that is told of; null for a test. */
      event_id: Nullable(Id),
      task_id: Nullable(Id),
      run_id: Nullable(Id),
      /** The body, the same at every attempt. */
      payload: closed({ type: OneOf(webhookTypes), timestamp: Timestamp, data: AnyObject }),
    }),
  },
  /** It has ended, and is sent anew: the same message with the same id, for another day. */
  WebhookRepeated: { version: 1, schema: closed({}) },
  WebhookDelivered: {
    version: 1,
    schema: closed({
      ...attempt,
      url: Type.String(),
      status: Type.Integer({ minimum: 200, maximum: 299 }),
      /** The beginning of the answer's body. */
      answer: Type.String(),
    }),
  },
  WebhookFailed: {
    version: 1,
    schema: closed({
      ...attempt,
      /** null: the agent had none any more. */
      url: Nullable(Type.String()),
      /** null: there was no answer. Some answer with statuses beyond those that are defined. */
      status: Nullable(Type.Integer({ minimum: 100, maximum: 999 })),
      error: Type.String(),
      answer: Nullable(Type.String()),
      /** When it is tried again; null: never. */
      retry_at: Nullable(Timestamp),
      /** Why it is not tried again; null where it is. */
      end: Nullable(OneOf(webhookEnds)),
    }),
  },
  /** It ended long ago, and what came before this is taken out of the log. */
  WebhookRemoved: { version: 1, schema: closed({}) },
} as const;
