import type { RecordedEvent } from '../../domain/event-store.ts';
import type { FiresEvent, TaskEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  evolveScheduleState,
  nextRunOf,
  type ScheduleState,
} from '../../domain/tasks/schedule-state.ts';
import { idOf } from '../../domain/streams.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import { pauseReasonOf } from '../../domain/tasks/task.ts';
import type { PauseReason, ScheduleKind, TaskStatus } from '../../domain/vocabulary.ts';
import { within, type Reach } from '../reach.ts';
import type { Filter, Projection } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';

/**
 * A task as the API shows it, without `last_run_at` (read from the runs view; a copy would cost a write per started
 * run) and `warnings` (they depend on what is registered now).
 */
export type TaskDocument = JsonObject &
  TaskDefinition & {
    readonly id: string;
    /** Left out in `default`. */
    readonly namespace?: string;
    readonly status: TaskStatus;
    /** Null unless it is paused. Documents of an older shape lack it. */
    readonly pause_reason?: PauseReason | null;
    readonly created_at: string;
    /** When someone last changed it; a fire does not count. */
    readonly updated_at: string;
    /** When the next fire runs, snooze included; null for paused, canceled and event tasks. */
    readonly next_run_at: string | null;
    /** Active and time-based, with no fire ahead. */
    readonly exhausted: boolean;
    /** Of the last event of `task-<id>`: its ETag. */
    readonly revision: number;
    /** The schedule state from which `next_run_at` is folded; not for clients. */
    readonly rhythm: JsonObject & RhythmPart;
  };

/** Schedule state without what the document has anyway, and without the backlog, which moves no next fire. */
type RhythmPart = Pick<ScheduleState, 'anchor' | 'set' | 'fires'>;

/** The fields that lists of tasks use. A task rarely changes, so each index can have them all. */
const listedFields = ['status', 'created_by', 'schedule_kind', 'title', 'namespace'];

/** Every task; canceled ones stay readable. */
export const tasksProjection: Projection<TaskDocument> = {
  name: 'tasks',
  schema: 6,
  // Schema 5 cannot be asked for a namespace, and lacks `pause_reason`. Schema 4 has other indexes too, which make some
  // lists slower.
  readsOlder: [4, 5],
  addedFields: { namespace: 6 },
  streams: ['task-', 'fires-'],
  fields: {
    namespace: 'text',
    status: 'text',
    created_by: 'text',
    schedule_kind: 'text',
    tags: 'text-list',
    title: 'text',
    created_at: 'text',
    exhausted: 'boolean',
    concurrency_key: 'text',
    concurrency_limit: 'number',
  },
  // A list by kind or title uses one of these indexes and its covered fields. The last index finds tasks that share a
  // concurrency key, smallest limit first.
  indexes: withinNamespaces([
    ['created_at'],
    ['created_by', 'created_at'],
    ['status', 'created_at'],
    ['concurrency_key', 'created_by', 'concurrency_limit'],
  ]),
  covered: [listedFields, listedFields, listedFields, [], listedFields, listedFields, listedFields],
  sparse: ['concurrency_key', 'namespace'],
  tallies: [
    { fields: ['namespace', 'created_by', 'status', 'schedule_kind'], nullable: ['namespace'] },
  ],
  keys: (event) => [idOf(event.stream)],
  evolve: evolveTaskDocument,
};

/** The filters of `GET /tasks`; sort by `created_at`, descending. */
export interface TaskFilters {
  readonly status?: TaskStatus | undefined;
  readonly created_by?: string | undefined;
  readonly schedule_kind?: ScheduleKind | undefined;
  readonly tag?: string | undefined;
  readonly search?: string | undefined;
}

/** The filters of a query over {@link tasksProjection}. */
export function taskFilters(reach: Reach, wanted: TaskFilters): readonly Filter[] {
  const filters: Filter[] = [...within(reach)];
  for (const field of ['created_by', 'status', 'schedule_kind'] as const) {
    const value = wanted[field];
    if (value !== undefined) filters.push({ field, op: 'eq', value });
  }
  if (wanted.tag !== undefined) filters.push({ field: 'tags', op: 'has', value: wanted.tag });
  if (wanted.search !== undefined) {
    filters.push({ field: 'title', op: 'contains', value: wanted.search });
  }
  return filters;
}

/** The tasks that prevent an agent's removal: active or paused, and not exhausted. */
export function liveTasksOf(agentId: string): readonly Filter[] {
  return [
    { field: 'created_by', op: 'eq', value: agentId },
    { field: 'status', op: 'in', value: ['active', 'paused'] },
    { field: 'exhausted', op: 'eq', value: false },
  ];
}

/** The tasks that prevent a namespace's deletion. */
export function liveTasksIn(namespace: string): readonly Filter[] {
  return [
    ...within(namespace),
    { field: 'status', op: 'in', value: ['active', 'paused'] },
    { field: 'exhausted', op: 'eq', value: false },
  ];
}

/** An agent's tasks with a concurrency key that may still run; sort by `concurrency_limit`. */
export function tasksWithKey(owner: string, key: string, statuses: readonly TaskStatus[]) {
  return [
    { field: 'concurrency_key', op: 'eq', value: key },
    { field: 'created_by', op: 'eq', value: owner },
    { field: 'status', op: 'in', value: statuses },
  ] as const satisfies readonly Filter[];
}

function evolveTaskDocument(
  task: TaskDocument | null,
  event: RecordedEvent,
  id: string,
): TaskDocument | null {
  // The two prefixes hold only events of these types.
  const known = event as unknown as TaskEvent | FiresEvent;
  const schedule = evolveScheduleState(task === null ? null : rhythmOf(task), known, event);
  if (schedule === null) return null;
  const { anchor, set, fires, status } = schedule;
  const next_run_at = status === 'active' ? nextRunOf(schedule) : null;
  const exhausted =
    status === 'active' && next_run_at === null && schedule.definition.schedule_kind !== 'event';
  const derived = { status, next_run_at, exhausted, rhythm: { anchor, set, fires } };
  const { occurredAt } = event.metadata;
  if (known.type === 'TaskCreated') {
    const dates = { created_at: occurredAt, updated_at: occurredAt };
    const { revision } = event;
    // A field comes first: V8 adds fields to an object that begins with a spread on a slow path.
    const { definition, namespace } = known.data;
    const paused = { pause_reason: null };
    const document = {
      id,
      ...definition,
      ...paused,
      ...dates,
      revision,
      ...derived,
    } as TaskDocument;
    return namespace === undefined ? document : Object.assign(document, { namespace });
  }
  if (task === null) return null;
  const changes = known.type === 'TaskUpdated' ? known.data.changes : {};
  const changed = event.stream.startsWith('task-')
    ? { updated_at: occurredAt, revision: event.revision }
    : {};
  const pause_reason =
    known.type === 'TaskPaused'
      ? pauseReasonOf(known.data)
      : status === 'paused'
        ? (task.pause_reason ?? null)
        : null;
  return { ...task, ...changes, ...changed, ...derived, pause_reason } as TaskDocument;
}

function rhythmOf(task: TaskDocument): ScheduleState {
  const { status, revision, rhythm: schedule, namespace } = task;
  const place = namespace === undefined ? {} : { namespace };
  return { ...place, ...schedule, status, definition: task, task_revision: revision, owed: [] };
}
