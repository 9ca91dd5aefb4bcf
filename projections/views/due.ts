import type { RecordedEvent } from '../../domain/event-store.ts';
import type { FiresEvent, TaskEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import {
  evolveScheduleState,
  nextRunOf,
  type ScheduleState,
} from '../../domain/tasks/schedule-state.ts';
import { idOf } from '../../domain/streams.ts';
import type { Projection } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';

/** The fields of a task that the scheduler needs. Canceled tasks are not here. */
export type DueDocument = JsonObject & {
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly task_id: string;
  /** When the next fire runs; null for paused and event tasks, and if none is ahead. */
  readonly next_run_at: string | null;
  readonly rhythm: ScheduleState & JsonObject;
};

/** Prefixes of the streams that schedule state is folded from. */
export const scheduleStreams: readonly string[] = ['task-', 'fires-'];

/** When tasks are due: the scheduler's view. The scheduler loads it at its start and continues from its checkpoint. */
export const dueProjection: Projection<DueDocument> = {
  name: 'due',
  schema: 3,
  // Schema 2 cannot be filtered by namespace.
  readsOlder: [2],
  addedFields: { namespace: 3 },
  streams: scheduleStreams,
  fields: { namespace: 'text', next_run_at: 'text' },
  indexes: withinNamespaces([['next_run_at']]),
  sparse: ['namespace'],
  keys: (event) => [idOf(event.stream)],
  evolve(document, event, taskId) {
    const schedule = evolveScheduleStateOf(document?.rhythm ?? null, event);
    if (schedule === null || schedule.status === 'canceled') return null;
    const nextRun = schedule.status === 'active' ? nextRunOf(schedule) : null;
    const { namespace } = schedule;
    const due = { task_id: taskId, next_run_at: nextRun, rhythm: schedule } as DueDocument;
    return namespace === undefined ? due : Object.assign(due, { namespace });
  },
};

/** Folds one event of `task-` or `fires-` into schedule state. */
export function evolveScheduleStateOf(
  schedule: ScheduleState | null,
  event: RecordedEvent,
): ScheduleState | null {
  // The two prefixes hold only events of these types.
  return evolveScheduleState(schedule, event as unknown as TaskEvent | FiresEvent, event);
}
