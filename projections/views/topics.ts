import type { RecordedEvent } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { namespaceField, namespaceOf } from '../../domain/namespaces/namespace.ts';
import { idOf } from '../../domain/streams.ts';
import type { ScheduleKind, TaskStatus } from '../../domain/vocabulary.ts';
import type { Projection } from '../read-model.ts';

/**
 * The fields of a task that matching topics to tasks needs. Tasks of other kinds are here too, because they may become
 * event tasks; canceled ones are not.
 */
export type TopicDocument = JsonObject & {
  readonly task_id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly created_by: string;
  readonly schedule_kind: ScheduleKind;
  readonly status: TaskStatus;
  /** Segments split by `.`, `*` for one segment, `#` for any number. Meaningless for other kinds. */
  readonly pattern: string;
  /** Whether events may trigger it now: it is an active event task. */
  readonly listening: boolean;
  /** The revision of the last event of `task-<id>`. A reader continues with the log after it. */
  readonly revision: number;
};

/** The pattern of an event task that names none. */
const EVERY_TOPIC = '#';

/** The view that shows which tasks listen to which topics. */
export const topicsProjection: Projection<TopicDocument> = {
  name: 'topics',
  schema: 1,
  streams: ['task-'],
  fields: { listening: 'boolean' },
  indexes: [['listening']],
  keys: (event) => [idOf(event.stream)],
  evolve: evolveTopicDocument,
};

function evolveTopicDocument(
  task: TopicDocument | null,
  event: RecordedEvent,
  taskId: string,
): TopicDocument | null {
  if (event.type === 'TaskCreated') {
    const { created_by, schedule_kind, schedule_expr } = event.data.definition;
    const pattern = schedule_expr ?? EVERY_TOPIC;
    const place = namespaceField(namespaceOf(event.data));
    const fields = { task_id: taskId, ...place, created_by, schedule_kind, pattern };
    return listeningOrNot({ ...fields, status: 'active', revision: event.revision });
  }
  if (task === null) return null;
  const { revision } = event;
  switch (event.type) {
    case 'TaskUpdated': {
      const { created_by, schedule_kind, schedule_expr } = event.data.changes;
      return listeningOrNot({
        ...task,
        revision,
        created_by: created_by ?? task.created_by,
        schedule_kind: schedule_kind ?? task.schedule_kind,
        pattern: schedule_expr === undefined ? task.pattern : (schedule_expr ?? EVERY_TOPIC),
      });
    }
    case 'TaskPaused':
      return listeningOrNot({ ...task, revision, status: 'paused' });
    case 'TaskResumed':
      return listeningOrNot({ ...task, revision, status: 'active' });
    case 'TaskCanceled':
      return null;
    default:
      return { ...task, revision };
  }
}

type TopicFields = Pick<
  TopicDocument,
  'task_id' | 'namespace' | 'created_by' | 'schedule_kind' | 'status' | 'pattern' | 'revision'
>;

function listeningOrNot(fields: TopicFields): TopicDocument {
  const listening = fields.schedule_kind === 'event' && fields.status === 'active';
  return { ...fields, listening };
}
