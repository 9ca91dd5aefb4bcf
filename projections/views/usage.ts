import { artifactBytesAt } from '../../domain/artifacts/artifact-bytes.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import { namespaceOfEvent } from '../../domain/events/metadata.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField } from '../../domain/namespaces/namespace.ts';
import type { Projection } from '../read-model.ts';

/** What a namespace has in the log and in the store of artifacts, as far as quotas limit it. The key is its name. */
export type UsageDocument = JsonObject & {
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly events: number;
  readonly artifact_bytes: number;
};

/**
 * Counts per namespace. A run's events count when it ends, all at once, so that this view does no work for most events.
 * What retention removes is subtracted.
 */
export const usageProjection: Projection<UsageDocument> = {
  name: 'usage',
  schema: 1,
  streams: ['run-', 'task-', 'topic-', 'demo-', 'ext_'],
  fields: {},
  indexes: [],
  keys(event) {
    const counts = eventsAt(event) !== 0 || artifactsAt(event) !== 0;
    return counts ? [namespaceOfEvent(event)] : [];
  },
  evolve(document, event, namespace) {
    const { events = 0, artifact_bytes = 0 } = document ?? {};
    return {
      ...namespaceField(namespace),
      // Not below 0: the first part of a log may have been removed before it was imported here.
      events: Math.max(0, events + eventsAt(event)),
      artifact_bytes: Math.max(0, artifact_bytes + artifactsAt(event)),
    };
  },
};

/** By how much an event changes the number of events that count. */
function eventsAt(event: RecordedEvent): number {
  switch (event.type) {
    case 'RunSucceeded':
    case 'RunFailed':
    case 'RunCanceled':
    case 'RunSkipped':
      return event.revision + 1;
    case 'RunRemoved':
      // All before it are gone.
      return -event.revision;
    case 'TopicTrimmed':
      return -event.data.deleted_count;
    case 'RunRetried':
    case 'EventPublished':
    case 'StreamEntryAdded':
      return 1;
    case 'Abandoned':
      return event.stream.startsWith('run-') ? 1 : 0;
    default:
      return event.stream.startsWith('task-') ? 1 : 0;
  }
}

function artifactsAt(event: RecordedEvent): number {
  if (event.type === 'RunRemoved') return -(event.data.artifact_bytes ?? 0);
  return artifactBytesAt(event);
}
