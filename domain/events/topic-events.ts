import { Type } from '@sinclair/typebox';
import { AnyObject, event, Id, Namespace, Nullable, Timestamp } from './schema-parts.ts';

/** Events of `topic-<topic>`, outside `default` `topic-~<namespace>~<topic>`. */
export const topicEvents = {
  EventPublished: event(
    {
      event_id: Id,
      topic: Type.String(),
      payload: AnyObject,
      source_agent_id: Id,
      published_at: Timestamp,
      /** Determined with the event; each gets a run. */
      triggered_tasks: Type.Array(Id, { maxItems: 5000 }),
      namespace: Namespace,
    },
    2,
  ),
  TopicTrimmed: event({
    cutoff: Timestamp,
    /** How many publications this removes. */
    deleted_count: Type.Integer({ minimum: 1 }),
    /** Revisions of this stream: the first removed one, and the first kept one. */
    first: Type.Integer({ minimum: 0 }),
    before: Type.Integer({ minimum: 1 }),
    /** No remaining or later publication is older. */
    oldest_at: Timestamp,
  }),
} as const;

/** Events of `demo-<stream>` and `ext_<id>-<stream>`: entries in streams of extensions. */
export const extensionEvents = {
  StreamEntryAdded: event({
    /** Any JSON. */
    data: Type.Unknown(),
  }),
} as const;

/** Events of `idem-<hash>`: a command that was sent with an Idempotency-Key. */
export const idempotencyEvents = {
  CommandReceived: event({
    agent_id: Id,
    request_hash: Type.String(),
    method: Type.String(),
    path: Type.String(),
    expires_at: Timestamp,
  }),
  CommandAnswered: event({
    status: Type.Integer(),
    body: Nullable(Type.Unknown()),
    headers: Type.Record(Type.String(), Type.String()),
  }),
} as const;
