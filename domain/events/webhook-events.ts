import { Type } from '@sinclair/typebox';
import { webhookEnds, webhookTypes } from '../vocabulary.ts';
import {
  AnyObject,
  closed,
  event,
  Id,
  Namespace,
  Nullable,
  OneOf,
  Timestamp,
} from './schema-parts.ts';

/** Recorded for every attempt. Only the version of the signing secret is stored. */
const attempt = {
  /** Counts from 1 in each round. */
  attempt: Type.Integer({ minimum: 1 }),
  secret_version: Type.Integer({ minimum: 0 }),
  took_ms: Type.Integer({ minimum: 0 }),
};

/** Events of `webhook-<id>`: one delivery to an agent's webhook, through all its attempts. */
export const webhookEvents = {
  WebhookScheduled: event(
    {
      agent_id: Id,
      /** The event it reports; null for a test. */
      event_id: Nullable(Id),
      task_id: Nullable(Id),
      run_id: Nullable(Id),
      /** The body, the same at every attempt. */
      payload: closed({ type: OneOf(webhookTypes), timestamp: Timestamp, data: AnyObject }),
      /** The agent's. */
      namespace: Namespace,
    },
    2,
  ),
  /** The delivery had ended and is sent again: the same message with the same id, for up to another day. */
  WebhookRepeated: event({}),
  WebhookDelivered: event({
    ...attempt,
    url: Type.String(),
    status: Type.Integer({ minimum: 200, maximum: 299 }),
    /** The beginning of the response body. */
    answer: Type.String(),
  }),
  WebhookFailed: event({
    ...attempt,
    /** Null: the agent no longer had a webhook URL. */
    url: Nullable(Type.String()),
    /** Null: no response. Some servers answer with undefined statuses. */
    status: Nullable(Type.Integer({ minimum: 100, maximum: 999 })),
    error: Type.String(),
    answer: Nullable(Type.String()),
    /** When it is retried; null: never. */
    retry_at: Nullable(Timestamp),
    /** Why it is not retried; null if it is. */
    end: Nullable(OneOf(webhookEnds)),
  }),
  /** Retention removed everything before this from the log. */
  WebhookRemoved: event({}),
} as const;
