import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, Nullable, OneOf } from '../../domain/events/schema-parts.ts';
import { auditOutcomes } from '../../domain/vocabulary.ts';
import { id, count, namespace, time } from './response-schemas.ts';

/** Responses about history, streams and the audit. */

const closedAs = (title: string) => ({ title, additionalProperties: false });

/** A difference between two states of a record. */
export const Change = Type.Object(
  {
    path: Type.String({ description: 'dotted: `payload.pipeline.0.with.text`' }),
    before: Type.Unknown(),
    after: Type.Unknown(),
  },
  closedAs('Change'),
);

const HistoryItem = Type.Object(
  {
    revision: count,
    at: time,
    actor: Type.String({ description: "the agent's id, or `service`" }),
    actor_name: Nullable(
      Type.String({ description: "the agent's current or last name; null for `service`" }),
    ),
    type: Type.String(),
    reason: Nullable(Type.String()),
    changes: Type.Array(Change),
  },
  closedAs('HistoryItem'),
);

const nextCursor = Nullable(Type.String());

/** A part of a history, oldest first. */
export const History = Type.Object(
  { items: Type.Array(HistoryItem), next_cursor: nextCursor },
  closedAs('History'),
);
export type History = Static<typeof History>;

const StreamItem = Type.Object(
  { stream: Type.String(), revision: count, last_at: time },
  closedAs('StreamItem'),
);

export const StreamPage = Type.Object(
  { items: Type.Array(StreamItem), next_cursor: nextCursor },
  closedAs('StreamPage'),
);
export type StreamPage = Static<typeof StreamPage>;

const EventItem = Type.Object(
  {
    stream: Type.String(),
    revision: count,
    position: Type.String(),
    event_id: Type.String(),
    type: Type.String(),
    data: AnyObject,
    metadata: Type.Record(Type.String(), Type.String()),
    created_at: time,
  },
  closedAs('EventItem'),
);

export const StreamEvents = Type.Object(
  {
    stream: Type.String(),
    items: Type.Array(EventItem),
    next_from: Nullable(count),
  },
  closedAs('StreamEvents'),
);
export type StreamEvents = Static<typeof StreamEvents>;

const AuditItem = Type.Object(
  {
    position: Type.String(),
    namespace,
    at: time,
    actor: Type.String({ description: "the agent's id, or `service`" }),
    actor_name: Nullable(
      Type.String({ description: "the agent's current or last name; null for `service`" }),
    ),
    source: Type.String({ description: 'address from which the command came' }),
    action: Type.String({ description: 'type of the event, or the refused command' }),
    type: Type.String({ description: 'of the event' }),
    stream: Type.String(),
    task_title: Nullable(
      Type.String({
        description: 'current title of the task, or of the task of the run or backfill',
      }),
    ),
    subject: Nullable(
      Type.String({
        description:
          'name of the agent, API key, secret, worker, namespace or topic that it is about; null for others',
      }),
    ),
    revision: count,
    reason: Nullable(Type.String()),
    correlation_id: Type.String(),
    outcome: OneOf(auditOutcomes),
    refusal: Nullable(
      Type.Object(
        {
          status: Type.Integer(),
          code: Type.String(),
          path: Nullable(Type.String({ description: 'null: the entry is for several uses' })),
          count: Type.Integer({ minimum: 1 }),
          first_at: time,
          last_at: time,
          run_id: Type.Optional(id),
          step: Type.Optional(Type.String()),
        },
        closedAs('Refused'),
      ),
    ),
    call: Nullable(
      Type.Object(
        {
          tool: Type.String(),
          code: Nullable(Type.String({ description: 'of the error; null if there was none' })),
          count: Type.Integer({ minimum: 1 }),
          first_at: time,
          last_at: time,
        },
        { ...closedAs('ToolCall'), description: 'a direct call of a tool' },
      ),
    ),
    use: Type.Optional(
      Type.Object(
        {
          name: Type.String(),
          version: Nullable(Type.Integer({ minimum: 1 })),
          source: Type.String({ description: 'store, vault, files or environment' }),
          task_id: Nullable(id),
          run_id: Nullable(Type.String({ description: 'null: the entry is for several uses' })),
          step: Nullable(Type.String()),
          count: Type.Integer({ minimum: 1 }),
          first_at: time,
          last_at: time,
        },
        { ...closedAs('SecretUse'), description: 'a use of a secret' },
      ),
    ),
  },
  closedAs('AuditItem'),
);
export type AuditItem = Static<typeof AuditItem>;

export const AuditPage = Type.Object(
  { items: Type.Array(AuditItem), total: Nullable(count), next_cursor: nextCursor },
  closedAs('AuditPage'),
);
export type AuditPage = Static<typeof AuditPage>;
