import { artifactBytesAt } from '../../domain/artifacts/artifact-bytes.ts';
import type { RecordedEvent } from '../../domain/event-store.ts';
import { namespaceOfEvent } from '../../domain/events/metadata.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField } from '../../domain/namespaces/namespace.ts';
import type { Projection } from '../read-model.ts';

/** How much of the log and the artifact store a namespace uses, for the quotas. The key is its name. */
export type UsageDocument = JsonObject & {
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly events: number;
  readonly artifact_bytes: number;
};

/**
 * Counts per namespace. All events of a run are counted when it ends, so this view does nothing for most events. Events
 * that retention removes are subtracted.
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
      // Not below 0, as the first part of a log may have been removed before it was imported.
      events: Math.max(0, events + eventsAt(event)),
      artifact_bytes: Math.max(0, artifact_bytes + artifactsAt(event)),
    };
  },
};

/** By how much an event changes the number of counted events. */
function eventsAt(event: RecordedEvent): number {
  switch (event.type) {
    case 'RunSucceeded':
    case 'RunFailed':
    case 'RunCanceled':
    case 'RunSkipped':
      return event.revision + 1;
    case 'RunRemoved':
      // All events before it are gone.
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
