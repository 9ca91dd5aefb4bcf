import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField, namespaceOf } from '../../domain/namespaces/namespace.ts';
import { idOf, topicIn } from '../../domain/streams.ts';
import { streamIdOf } from '../../domain/topics/topic.ts';
import { within, type Reach } from '../reach.ts';
import type { Filter, Projection, Query, Sort } from '../read-model.ts';

/** How many publications are kept per topic. There are as many slots, which are reused in turn. */
export const KEPT_OF_A_TOPIC = 1000;

/** A publication, as `GET /stream/recent` shows it. */
export type PublishedDocument = JsonObject & {
  readonly listed: true;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly topic: string;
  /** The position in the log, which orders the publications of all topics. */
  readonly position: string;
  readonly oldest_at: null;
  readonly revision: number;
  readonly event_id: string;
  readonly stream_id: string;
  readonly payload: JsonObject;
  readonly source_agent_id: string;
  readonly published_at: string;
  readonly triggered_tasks: readonly string[];
};

/** The fields of a topic that trimming needs. */
export type TopicExtentDocument = JsonObject & {
  readonly listed: false;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly topic: string;
  readonly position: null;
  /** No remaining publication is older. */
  readonly oldest_at: string;
  /** Events of `topic-<topic>` before this revision are trimmed away. */
  readonly before: number;
  /** Revisions from `before` on that are not publications. */
  readonly trims: readonly number[];
};

/**
 * Recent publications of each topic, and how far each topic is trimmed. Bounded by the number of topics: each
 * publication replaces the one a thousand revisions before it.
 */
export const publishedProjection: Projection<PublishedDocument | TopicExtentDocument> = {
  name: 'published',
  schema: 3,
  // Schema 1 cannot be filtered by namespace, and schema 2 not by the id of an event.
  readsOlder: [1, 2],
  addedFields: { namespace: 2, event_id: 3 },
  streams: ['topic-'],
  fields: {
    namespace: 'text',
    listed: 'boolean',
    topic: 'text',
    position: 'text',
    oldest_at: 'text',
    event_id: 'text',
  },
  indexes: [
    ['listed', 'position'],
    ['topic', 'listed', 'position'],
    ['namespace', 'listed', 'position'],
    ['namespace', 'topic', 'listed', 'position'],
    ['event_id'],
  ],
  covered: [['namespace'], ['namespace'], [], [], []],
  sparse: ['namespace', 'event_id'],
  keys: keysOf,
  evolve(document, event, key) {
    const isExtent = key === idOf(event.stream);
    return isExtent ? extentAfter(document, event) : placeAfter(document, event);
  },
};

/** Paged by position, as offsets shift with each published event. */
export const newestPublished: readonly Sort[] = [{ field: 'position', direction: 'descending' }];

/** Published events, newest first, of one topic or of all topics. */
export function recentQuery(reach: Reach, topic: string | undefined, limit: number): Query {
  const ofTopic: readonly Filter[] =
    topic === undefined ? [] : [{ field: 'topic', op: 'eq', value: topic }];
  return {
    filters: [...within(reach), ...ofTopic, { field: 'listed', op: 'eq', value: true }],
    sort: newestPublished,
    limit,
  };
}

/** The published event with an id, if it is one of the latest of its topic. */
export const publicationQuery = (event_id: string): Query => ({
  filters: [{ field: 'event_id', op: 'eq', value: event_id }],
  sort: [],
  limit: 1,
});

/** Selects the topics of a namespace, one document each. */
export function topicsIn(reach: Reach): readonly Filter[] {
  return [...within(reach), { field: 'listed', op: 'eq', value: false }];
}

/** Topics that may have publications before a time. @param after key to continue after */
export function olderTopics(
  reach: Reach,
  cutoff: string,
  limit: number,
  after: string | null,
): Query {
  return {
    filters: [
      ...within(reach),
      { field: 'listed', op: 'eq', value: false },
      { field: 'oldest_at', op: 'lt', value: cutoff },
    ],
    sort: [],
    limit,
    ...(after === null ? {} : { after: { values: [], key: after } }),
  };
}

/** The key of a slot; a topic's name has no space in it. @param topic with its namespace, as in the stream's name */
function placeOf(topic: string, revision: number): string {
  return `${topic} ${revision % KEPT_OF_A_TOPIC}`;
}

function keysOf(event: RecordedEvent): readonly string[] {
  const topic = idOf(event.stream);
  if (event.type === 'EventPublished') {
    const place = placeOf(topic, event.revision);
    // Later publications do not change the extent of their topic, which saves a write.
    return event.revision === 0 ? [topic, place] : [place];
  }
  if (event.type !== 'TopicTrimmed') return [];
  const { first, before } = event.data;
  const keys = [topic];
  for (let revision = Math.max(first, before - KEPT_OF_A_TOPIC); revision < before; revision += 1) {
    keys.push(placeOf(topic, revision));
  }
  return keys;
}

function extentAfter(
  document: PublishedDocument | TopicExtentDocument | null,
  event: RecordedEvent,
): PublishedDocument | TopicExtentDocument | null {
  const { namespace, topic } = topicIn(event.stream);
  const place = namespaceField(namespace);
  const extent = { listed: false, ...place, topic, position: null } as const;
  if (event.type === 'EventPublished') {
    return { ...extent, oldest_at: event.data.published_at, before: 0, trims: [] };
  }
  if (event.type !== 'TopicTrimmed') return document;
  const { before, oldest_at } = event.data;
  const known = document?.listed === false ? document.trims : [];
  const trims = [...known.filter((revision) => revision >= before), event.revision];
  return { ...extent, oldest_at, before, trims };
}

function placeAfter(
  document: PublishedDocument | TopicExtentDocument | null,
  event: RecordedEvent,
): PublishedDocument | TopicExtentDocument | null {
  const { revision, position } = event;
  if (event.type === 'EventPublished') {
    const { event_id, topic, source_agent_id, published_at, triggered_tasks } = event.data;
    const stream_id = streamIdOf(published_at, revision);
    const payload = event.data.payload as JsonObject;
    const fields = {
      event_id,
      stream_id,
      payload,
      source_agent_id,
      published_at,
      triggered_tasks,
    };
    const place = namespaceField(namespaceOf(event.data));
    return { listed: true, ...place, topic, position, oldest_at: null, revision, ...fields };
  }
  if (event.type !== 'TopicTrimmed' || document?.listed !== true) return document;
  return document.revision < event.data.before ? null : document;
}
