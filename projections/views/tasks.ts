import type { RecordedEvent } from '../../domain/event-store.ts';
import type { FiresEvent, TaskEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  evolveScheduleState,
  nextFireOf,
  nextRunOf,
  type ScheduleState,
} from '../../domain/tasks/schedule-state.ts';
import { secretNamesIn } from '../../domain/pipeline/secret-names.ts';
import { idOf } from '../../domain/streams.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import { actOf, pauseReasonOf, type Act, type Snooze } from '../../domain/tasks/task.ts';
import type { PauseReason, ScheduleKind, TaskOrder, TaskStatus } from '../../domain/vocabulary.ts';
import { within, type Reach } from '../reach.ts';
import type { Filter, Projection, Sort } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';

/**
 * A task as the API shows it, without `last_run_at` (read from the runs view; a copy would cost a write per started
 * run) and `warnings` (they depend on the tools that are registered now).
 */
export type TaskDocument = JsonObject &
  TaskDefinition & {
    readonly id: string;
    /** Left out in `default`. */
    readonly namespace?: string;
    readonly status: TaskStatus;
    /** null unless it is paused. Documents of an older shape lack it. */
    readonly pause_reason?: PauseReason | null;
    /**
     * The agent that paused it; null unless it is paused. Documents of an older shape lack this field and the next one.
     */
    readonly paused?: (JsonObject & Act) | null;
    /** The agent that snoozed its next fire, or null. A pause does not end the snooze. */
    readonly snoozed?: (JsonObject & Snooze) | null;
    readonly created_at: string;
    /** When someone last changed it; a fire does not count. */
    readonly updated_at: string;
    /** When the next fire runs, snooze included; null for paused, canceled and event tasks. */
    readonly next_run_at: string | null;
    /** The names of the secrets in its pipeline; left out if there are none. Clients do not see them. */
    readonly secrets?: readonly string[];
    /** Active and time-based, with no fire ahead. */
    readonly exhausted: boolean;
    /** The revision of the last event of `task-<id>`, which is the task's ETag. */
    readonly revision: number;
    /** The schedule state from which `next_run_at` is folded; not for clients. */
    readonly rhythm: JsonObject & ScheduleStatePart;
  };

/**
 * Schedule state without the fields that the document already has, and without the backlog, which moves no next fire.
 */
type ScheduleStatePart = Pick<ScheduleState, 'anchor' | 'set' | 'fires'>;

/** The fields that lists of tasks use. A task rarely changes, so each index can cover all of them. */
const listedFields = ['status', 'created_by', 'schedule_kind', 'title', 'namespace'];

/** Every task; canceled ones stay readable. */
export const tasksProjection: Projection<TaskDocument> = {
  name: 'tasks',
  schema: 8,
  // Schema 7 cannot be filtered by secret. Schema 6 cannot be sorted by the next run, and lacks `paused` and `snoozed`.
  // Schema 5 cannot be filtered by namespace, and lacks `pause_reason`. Schema 4 has other indexes too, which make some
  // lists slower.
  readsOlder: [4, 5, 6, 7],
  addedFields: { namespace: 6, next_run_at: 7, secrets: 8 },
  streams: ['task-', 'fires-'],
  fields: {
    namespace: 'text',
    status: 'text',
    created_by: 'text',
    schedule_kind: 'text',
    tags: 'text-list',
    secrets: 'text-list',
    title: 'text',
    created_at: 'text',
    // It has no index because it changes with each fire. Sorting ten thousand tasks takes
    // milliseconds.
    next_run_at: 'text',
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

/** Orders that also depend on other views; see `projections/reading/task-order.ts`. */
const joinedOrders = ['owner', 'p95', 'health'] as const satisfies readonly TaskOrder[];
export type JoinedOrder = (typeof joinedOrders)[number];

/** Orders that this view gives. */
type StoredOrder = Exclude<TaskOrder, JoinedOrder>;

/** Whether an order also depends on other views. */
export function isJoinedOrder(order: TaskOrder): order is JoinedOrder {
  return (joinedOrders as readonly TaskOrder[]).includes(order);
}

/** Sorts before all times, which are compared as strings. */
const FIRST_TIME = '0001';

/**
 * How a list of tasks is ordered: newest first, by title, or by the next run.
 * @returns the sort, and filters that leave out tasks without a place in that order
 */
export function taskOrder(order: StoredOrder): {
  readonly sort: readonly Sort[];
  readonly filters: readonly Filter[];
} {
  switch (order) {
    case 'created':
      return { sort: [{ field: 'created_at', direction: 'descending' }], filters: [] };
    case 'title':
      return { sort: [{ field: 'title', direction: 'ascending' }], filters: [] };
    case 'next':
      return {
        sort: [{ field: 'next_run_at', direction: 'ascending' }],
        filters: [{ field: 'next_run_at', op: 'gt', value: FIRST_TIME }],
      };
  }
}

/** The filters of `GET /tasks`. */
export interface TaskFilters {
  readonly status?: TaskStatus | undefined;
  readonly created_by?: string | undefined;
  readonly schedule_kind?: ScheduleKind | undefined;
  readonly tag?: string | undefined;
  /** The name of a secret that the pipeline names. */
  readonly secret?: string | undefined;
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
  if (wanted.secret !== undefined) {
    filters.push({ field: 'secrets', op: 'has', value: wanted.secret });
  }
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

/** Tasks that prevent the deletion of a namespace. */
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
  const schedule = evolveScheduleState(task === null ? null : scheduleStateOf(task), known, event);
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
    // A field comes first, because V8 adds fields slowly to an object that begins with a spread.
    const { definition, namespace } = known.data;
    const paused = { pause_reason: null, paused: null, snoozed: null };
    const document = {
      id,
      ...definition,
      ...paused,
      ...dates,
      revision,
      ...derived,
      ...secretsField(definition.payload),
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
  const acts = { paused: pausedBy(task, known, event), snoozed: snoozedBy(task, schedule, event) };
  const before = changes.payload === undefined ? task : withSecretsOf(task, changes.payload);
  return { ...before, ...changes, ...changed, ...derived, pause_reason, ...acts } as TaskDocument;
}

function withSecretsOf(
  { secrets: _before, ...task }: TaskDocument,
  payload: TaskDefinition['payload'],
): object {
  return { ...task, ...secretsField(payload) };
}

function secretsField({ pipeline }: TaskDefinition['payload']): Pick<TaskDocument, 'secrets'> {
  const secrets = secretNamesIn(pipeline);
  return secrets.length === 0 ? {} : { secrets };
}

function pausedBy(
  { status, paused = null }: TaskDocument,
  { type }: TaskEvent | FiresEvent,
  { metadata }: RecordedEvent,
): Act | null {
  if (type === 'TaskPaused') return status === 'paused' ? paused : actOf(metadata);
  return type === 'TaskResumed' || type === 'TaskCanceled' ? null : paused;
}

/** The snooze of the next fire, even if a pause holds that fire back. */
function snoozedBy(
  { snoozed = null }: TaskDocument,
  schedule: ScheduleState,
  event: RecordedEvent,
): Snooze | null {
  const { next_fire_at, next_run_at: until } = schedule.set;
  if (until === null || nextFireOf(schedule) !== next_fire_at) return null;
  return event.type === 'TaskSnoozed' ? { ...actOf(event.metadata), until } : snoozed;
}

function scheduleStateOf(task: TaskDocument): ScheduleState {
  const { status, revision, rhythm: schedule, namespace } = task;
  const place = namespace === undefined ? {} : { namespace };
  return { ...place, ...schedule, status, definition: task, task_revision: revision, owed: [] };
}
