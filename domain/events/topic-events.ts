import { Type } from '@sinclair/typebox';
import { AnyObject, Id, Nullable, Timestamp, closed } from './schema-parts.ts';

/** Events of `topic-<topic>`. */
export const topicEvents = {
  EventPublished: {
    version: 1,
    schema: closed({
      event_id: Id,
      topic: Type.String(),
      payload: AnyObject,
      source_agent_id: Id,
      published_at: Timestamp,
      /** Decided with the event; each of them gets a run. */
      triggered_tasks: Type.Array(Id, { maxItems: 5000 }),
    }),
  },
  TopicTrimmed: {
    version: 1,
    schema: closed({
      cutoff: Timestamp,
      /** Publications that this takes away. */
      deleted_count: Type.Integer({ minimum: 1 }),
      /** Revisions of this stream, from the first that was there to the first that stays. */
      first: Type.Integer({ minimum: 0 }),
      before: Type.Integer({ minimum: 1 }),
      /** No publication that stays, or comes later, is older. */
      oldest_at: Timestamp,
    }),
  },
} as const;

/** Events of `demo-<stream>` and `ext_<id>-<stream>`: what extensions write into streams of their own. */
export const extensionEvents = {
  StreamEntryAdded: {
    version: 1,
    schema: closed({
      /** Any JSON. */
      data: Type.Unknown(),
    }),
  },
} as const;

/** Events of `idem-<hash>`: the memory of a command that was sent with an Idempotency-Key. */
export const idempotencyEvents = {
  CommandReceived: {
    version: 1,
    schema: closed({
      agent_id: Id,
      request_hash: Type.String(),
      method: Type.String(),
      path: Type.String(),
      expires_at: Timestamp,
    }),
  },
  CommandAnswered: {
    version: 1,
    schema: closed({
      status: Type.Integer(),
      body: Nullable(Type.Unknown()),
      headers: Type.Record(Type.String(), Type.String()),
    }),
  },
} as const;
