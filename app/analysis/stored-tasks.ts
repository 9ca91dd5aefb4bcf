import type { ParamsSource } from '../../api/params/shown-params.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { taskAt } from '../../domain/tasks/task-at.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { WeighedCache } from '../../projections/reading/weighed-cache.ts';

/** Reads tasks from the log at the revisions that runs are pinned to. */
export function storedTasks(store: EventStore): ParamsSource['pinnedTasks'] {
  const known = new WeighedCache<LiveTask>({ entries: 10_000, weight: 32 * 1024 * 1024 });
  return {
    peek: (taskId, revision) => known.get(`${taskId}@${revision}`),
    async at(taskId, revision) {
      const task = await taskAt(store, taskId, revision);
      known.set(`${taskId}@${revision}`, task);
      return task;
    },
  };
}
