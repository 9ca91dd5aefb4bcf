import type { EventStore } from '../../domain/event-store.ts';
import type { ScheduleState } from '../../domain/tasks/schedule-state.ts';
import { streams } from '../../domain/streams.ts';
import { evolveScheduleStateOf } from '../../projections/views/due.ts';
import { readWholeStream } from '../read-stream.ts';

/**
 * Brings a task's schedule state up to date with the newer events of its two streams.
 *
 * @param known null: from the beginning
 * @returns null if the task was never created
 * @throws EventStoreError `CORRUPT_EVENT` if an event does not match its schema, and all errors of the log
 */
export async function readScheduleState(
  store: EventStore,
  taskId: string,
  known: ScheduleState | null,
): Promise<ScheduleState | null> {
  const from = (revision = -1): { from: number } => ({ from: revision + 1 });
  const changes = await readWholeStream(store, streams.task(taskId), from(known?.task_revision));
  const fires = await readWholeStream(store, streams.fires(taskId), from(known?.fires?.revision));
  // In the order of the log, because the backlog after a change depends on the fires before it.
  return [...changes, ...fires]
    .sort((a, b) => (a.position < b.position ? -1 : 1))
    .reduce<ScheduleState | null>(
      (schedule, event) => evolveScheduleStateOf(schedule, event),
      known,
    );
}
