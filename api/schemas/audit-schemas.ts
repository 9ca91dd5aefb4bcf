import { Type, type Static } from '@sinclair/typebox';
import { catalogue, type EventType } from '../../domain/events/catalogue.ts';
import { OneOf } from '../../domain/events/schema-parts.ts';
import { auditOutcomes } from '../../domain/vocabulary.ts';
import { pageParameters } from '../endpoints/listing.ts';

/** Requests that read the log: histories, streams, the audit. */

const { limit, cursor, after } = pageParameters;

export const HistoryQuery = Type.Object({
  limit,
  cursor: Type.Optional(Type.String({ maxLength: 20 })),
  after,
});
export type HistoryQuery = Static<typeof HistoryQuery>;

/** The most characters of a stream's name. No name is that long. */
const MAX_STREAM_NAME_LENGTH = 400;

export const StreamsQuery = Type.Object({
  prefix: Type.String({ maxLength: MAX_STREAM_NAME_LENGTH, default: '' }),
  limit,
  cursor,
  after,
});
export type StreamsQuery = Static<typeof StreamsQuery>;

const directions = ['forwards', 'backwards'] as const;

export const EventsQuery = Type.Object({
  from: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
  direction: Type.Unsafe<(typeof directions)[number]>({
    ...OneOf(directions),
    default: 'forwards',
  }),
  limit,
  after,
});
export type EventsQuery = Static<typeof EventsQuery>;

const what = {
  actor: Type.Optional(Type.String({ maxLength: 64 })),
  stream: Type.Optional(Type.String({ minLength: 1, maxLength: MAX_STREAM_NAME_LENGTH })),
  type: Type.Optional(OneOf(Object.keys(catalogue) as EventType[])),
};
const parts = {
  ...what,
  source: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'address from which it came' }),
  ),
  correlation_id: Type.Optional(
    Type.String({ minLength: 1, maxLength: 200, description: 'the `X-Request-Id` of the request' }),
  ),
  outcome: Type.Optional(OneOf(auditOutcomes)),
  search: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'a string in the action, stream, reason or path, or in the name of the agent, task, secret or other subject; ignores case',
    }),
  ),
};
const timestamp = Type.Optional(Type.String({ maxLength: 64 }));

export const AuditQuery = Type.Object({
  ...parts,
  from: timestamp,
  to: timestamp,
  limit,
  cursor,
  after,
});
export type AuditQuery = Static<typeof AuditQuery>;

export const AuditLiveQuery = Type.Object({ ...parts, after });
export type AuditLiveQuery = Static<typeof AuditLiveQuery>;
