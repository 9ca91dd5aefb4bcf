import { requireTask } from '../domain/task.ts';
import type { PinnedTasks } from './pinned-tasks.ts';
import type { Admission } from './run-executor.ts';
import type { QueuedRun } from './run-queue.ts';

const go: Admission = { kind: 'go' };

/**
 * Whether the task of a run still wants it: a scheduled run does not begin while its task is paused, and no run
 * begins whose task is canceled.
 */
export function taskAdmission(
  tasks: PinnedTasks,
): (run: QueuedRun) => Admission | Promise<Admission> {
  return (run) => {
    const latest = tasks.latest(run.taskId);
    return latest instanceof Promise
      ? latest.then((task) => admit(run, requireTask(task).status))
      : admit(run, latest.status);
  };
}

function admit(run: QueuedRun, status: 'active' | 'paused' | 'canceled'): Admission {
  if (status === 'canceled') {
    return { kind: 'end', event: { type: 'RunCanceled', data: { attempt: run.attempt } } };
  }
  if (status === 'active' || run.trigger !== 'schedule' || run.attempt > 0) return go;
  return {
    kind: 'end',
    event: {
      type: 'RunSkipped',
      data: {
        task_id: run.taskId,
        task_revision: run.taskRevision,
        created_by: run.createdBy,
        trigger: run.trigger,
        scheduled_for: run.scheduledFor,
        priority: run.priority,
        reason: 'paused',
        because_of: null,
      },
    },
  };
}
