import { Type, type Static } from '@sinclair/typebox';
import { closed, Nullable } from '../../domain/events/schema-parts.ts';
import { count, done, id, listedPayload, time } from './response-schemas.ts';

/** Responses about published events. */

const streamId = Type.String({ pattern: '^[0-9]+-[0-9]+$' });

const published = {
  event_id: id,
  stream_id: streamId,
  topic: Type.String(),
  triggered_tasks: Type.Array(id),
  published_at: time,
};

export const EventPublished = done(published);
export type EventPublished = Static<typeof EventPublished>;

export const Topics = Type.Object(
  {
    total_topics: count,
    topics: Type.Array(
      closed({ topic: Type.String(), active_tasks: count, task_ids: Type.Array(id) }),
    ),
    limit: count,
    offset: count,
    has_more: Type.Boolean(),
    next_cursor: Nullable(Type.String()),
  },
  { title: 'Topics', additionalProperties: false },
);
export type Topics = Static<typeof Topics>;

export const RecentEvents = Type.Object(
  {
    total_events: count,
    events: Type.Array(closed({ ...published, payload: listedPayload, source_agent_id: id })),
    truncated: Type.Boolean({
      description:
        'true if the response was cut at 4 MiB before `count` events; ask for older events by topic or with `GET /streams/{stream}`',
    }),
  },
  { title: 'RecentEvents', additionalProperties: false },
);
export type RecentEvents = Static<typeof RecentEvents>;

export const EventsRemoved = done({
  deleted_count: count,
  max_age_hours: Type.Number({ exclusiveMinimum: 0 }),
  cutoff: time,
  complete: Type.Boolean(),
});
export type EventsRemoved = Static<typeof EventsRemoved>;
