import { BEGINNING, type EventStore, type RecordedEvent } from '../../../domain/event-store.ts';
import { idOf } from '../../../domain/streams.ts';
import type { ScheduleState } from '../../../domain/tasks/schedule-state.ts';
import { isFromLog } from '../../../projections/log-identity.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import {
  dueProjection,
  evolveScheduleStateOf,
  scheduleStreams,
} from '../../../projections/views/due.ts';
import { InterruptedError } from '../calling/command-errors.ts';

const PAGE_SIZE = 500;

/**
 * The schedule state of every task that is not canceled, once each: the view `due`, updated by the later events of the
 * log. Memory holds a page of the view and the changed tasks; without a view of this log, all tasks.
 *
 * @throws EventStoreError `UNAVAILABLE`, ReadModelError; InterruptedError when the signal aborts
 */
export async function* currentSchedules(
  store: EventStore,
  readModel: ReadModel,
  signal: AbortSignal,
): AsyncGenerator<{ readonly taskId: string; readonly state: ScheduleState }> {
  // A subscription to an unavailable log would wait; this fails.
  await store.head();
  const hasView =
    (await readModel.liveGeneration(dueProjection)) !== null &&
    (await isFromLog(dueProjection, store, readModel));
  const checkpoint = hasView ? await readModel.checkpoint(dueProjection) : null;
  const changed = new Map<string, ScheduleState | null>();
  const inView = async (taskId: string): Promise<ScheduleState | null> =>
    checkpoint === null
      ? null
      : ((await readModel.get(dueProjection, taskId))?.document.rhythm ?? null);
  const after = checkpoint ?? BEGINNING;
  const prefixes = scheduleStreams;
  for await (const message of store.subscribe({ after, prefixes, once: true, signal })) {
    if (message.kind === 'caught-up') break;
    for (const event of message.events) {
      if (event.fault !== undefined) continue;
      const taskId = idOf(event.stream);
      const schedule = changed.get(taskId) ?? (await inView(taskId));
      changed.set(
        taskId,
        contains(schedule, event) ? schedule : evolveScheduleStateOf(schedule, event),
      );
    }
  }
  if (signal.aborted) throw new InterruptedError(signal.reason);
  for (const [taskId, schedule] of changed) {
    if (schedule !== null && schedule.status !== 'canceled') yield { taskId, state: schedule };
  }
  let key: string | null = checkpoint === null ? null : '';
  while (key !== null) {
    const page: readonly { readonly key: string; readonly document: { rhythm: ScheduleState } }[] =
      await readModel.find(dueProjection, {
        filters: [],
        sort: [],
        limit: PAGE_SIZE,
        ...(key === '' ? {} : { after: { values: [], key } }),
      });
    for (const { key: taskId, document } of page) {
      if (!changed.has(taskId)) yield { taskId, state: document.rhythm };
    }
    key = page.length < PAGE_SIZE ? null : (page.at(-1)?.key ?? null);
  }
}

/** Whether the view, which may have moved past its checkpoint in the meantime, contains an event. */
function contains(schedule: ScheduleState | null, event: RecordedEvent): boolean {
  if (schedule === null) return false;
  return event.stream.startsWith('task-')
    ? event.revision <= schedule.task_revision
    : event.revision <= (schedule.fires?.revision ?? -1);
}
