import type { Examples } from '../examples.ts';
import { agentId, due, eventId, done, runId, taskId } from './values.ts';

const event = { topic: 'orders.created', payload: { order: 4711 }, source_agent_id: agentId };
const published = {
  event_id: eventId,
  stream_id: '1795420800000-0',
  topic: event.topic,
  triggered_tasks: [taskId],
  published_at: due,
};

const listed = {
  ...event,
  event_id: eventId,
  stream_id: published.stream_id,
  source_agent_name: 'shop',
  published_at: due,
  triggered: 1,
  runs: [{ task_id: taskId, run_id: runId }],
};

export const eventExamples: Readonly<Record<string, Examples>> = {
  publishEvent: {
    body: event,
    responses: { 202: done('the event is published', published) },
  },
  listEvents: { responses: { 200: { items: [listed], next_cursor: null } } },
  getEvent: { responses: { 200: listed } },
  listTopics: {
    parameters: { limit: 200, matching: event.topic },
    responses: {
      200: {
        total_topics: 1,
        topics: [{ topic: event.topic, active_tasks: 1, task_ids: [taskId] }],
        limit: 200,
        offset: 0,
        has_more: false,
        next_cursor: null,
      },
    },
  },
  listRecentEvents: {
    responses: {
      200: { total_events: 1, events: [{ ...published, ...event }], truncated: false },
    },
  },
  deleteOldEvents: {
    responses: {
      200: done('older events are deleted', {
        deleted_count: 12,
        max_age_hours: 72,
        cutoff: '2026-11-20T08:00:00.000Z',
        complete: true,
      }),
    },
  },
};
