import { Type, type Static } from '@sinclair/typebox';
import { AnyObject, closed, Nullable } from '../../domain/events/schema-parts.ts';
import { agentName, count, done, id, listedPayload, namespace, time } from './response-schemas.ts';

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
        'true if the response was cut at 4 MiB; read older events by topic or with `GET /streams/{stream}`',
    }),
  },
  { title: 'RecentEvents', additionalProperties: false },
);
export type RecentEvents = Static<typeof RecentEvents>;

/** The most runs that a list shows for one event. */
export const MAX_SHOWN_RUNS = 100;

const listed = {
  event_id: id,
  stream_id: streamId,
  namespace,
  topic: Type.String(),
  payload: listedPayload,
  source_agent_id: id,
  source_agent_name: agentName,
  published_at: time,
  triggered: Type.Integer({ minimum: 0, description: 'number of tasks that it triggered' }),
  runs: Type.Array(closed({ task_id: id, run_id: id }), {
    description: 'the first 100 runs that it triggered; they are requested shortly after the event',
  }),
};

export const EventPage = Type.Object(
  { items: Type.Array(closed(listed)), next_cursor: Nullable(Type.String()) },
  { title: 'EventPage', additionalProperties: false },
);
export type EventPage = Static<typeof EventPage>;

/** A published event as shown by `GET /events/{event_id}`, with its whole payload. */
export const PublishedEvent = Type.Object(
  { ...listed, payload: AnyObject },
  { title: 'PublishedEvent', additionalProperties: false },
);
export type PublishedEvent = Static<typeof PublishedEvent>;

export const EventsRemoved = done({
  deleted_count: count,
  max_age_hours: Type.Number({ exclusiveMinimum: 0 }),
  cutoff: time,
  complete: Type.Boolean(),
});
export type EventsRemoved = Static<typeof EventsRemoved>;
