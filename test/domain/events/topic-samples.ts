import type { DataOf } from '../../../domain/events/catalogue.ts';

type TopicType = 'EventPublished' | 'TopicTrimmed' | 'PayloadStored' | 'PayloadReferenced';

/** Samples of the events of topics and of stored payloads. */
export const topicSamples = (
  id: string,
  at: string,
  text: string,
): { readonly [T in TopicType]: readonly DataOf<T>[] } => ({
  EventPublished: [
    {
      event_id: 'event-1',
      topic: 'a.b',
      payload: { text },
      source_agent_id: 'agent-1',
      published_at: at,
      triggered_tasks: ['task-1'],
    },
  ],
  TopicTrimmed: [{ cutoff: at, deleted_count: 3, first: 2, before: 6, oldest_at: at }],
  PayloadStored: [
    { event_id: id, payload: { text, deep: { list: [1, null] } }, triggered_tasks: [id] },
    { event_id: id, payload: {}, triggered_tasks: [], namespace: 'shop' },
  ],
  PayloadReferenced: [{ run_id: id }, { run_id: id, namespace: 'shop' }],
});
