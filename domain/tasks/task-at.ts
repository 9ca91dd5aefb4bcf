import type { EventStore } from '../event-store.ts';
import type { TaskEvent } from '../events/catalogue.ts';
import { streams } from '../streams.ts';
import { requireTask, taskFold, type LiveTask } from './task.ts';

/** The task as it was at a revision. @throws RefusalError `NOT_FOUND`; EventStoreError all errors of the log */
export async function taskAt(
  store: EventStore,
  taskId: string,
  revision: number,
): Promise<LiveTask> {
  let state = taskFold.initial;
  for (let from = 0; from <= revision;) {
    const limit = Math.min(1000, revision + 1 - from);
    const page = await store.readStream(streams.task(taskId), { from, limit });
    const last = page.at(-1);
    if (last === undefined) break;
    for (const event of page) state = taskFold.evolve(state, event as unknown as TaskEvent, event);
    from = last.revision + 1;
  }
  return requireTask(state);
}
