import type { Clock } from '../../domain/clock.ts';
import { requireTask, type LiveTask } from '../../domain/tasks/task.ts';
import type { RunRate } from '../fairness/run-rate.ts';
import type { KeySemaphore } from '../keys/key-semaphore.ts';
import { namespaceField } from '../../domain/namespaces/namespace.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { Admission } from './run-work.ts';
import type { QueuedRun } from './queued-run.ts';

const go: Admission = { kind: 'go' };

/** How often a backfill run checks whether its task is still paused. Milliseconds. */
const PAUSE_CHECK_INTERVAL = 5000;

/**
 * Admits a run by its task's status. While the task is paused, a scheduled run is skipped and a backfill run waits. Runs
 * of a canceled task are canceled.
 */
export function taskAdmission(
  tasks: PinnedTasks,
  clock: Pick<Clock, 'now'>,
): (run: QueuedRun) => Admission | Promise<Admission> {
  return (run) => {
    const latest = tasks.latest(run.taskId);
    return latest instanceof Promise
      ? latest.then((task) => admit(run, requireTask(task).status, clock))
      : admit(run, latest.status, clock);
  };
}

/** Admits a run by its task's status, then by the quota of its namespace, then by its keys. */
export function runAdmission(
  tasks: PinnedTasks,
  keys: Pick<KeySemaphore, 'admit' | 'postpone'>,
  clock: Pick<Clock, 'now'>,
  rate?: Pick<RunRate, 'admit'>,
): (run: QueuedRun, task: LiveTask) => Admission | Promise<Admission> {
  const byTask = taskAdmission(tasks, clock);
  return (run, task) => {
    const byKeys = (admission: Admission): Admission | Promise<Admission> => {
      if (admission.kind === 'go') return keys.admit(run, task);
      if (admission.kind === 'wait') keys.postpone(run, task);
      return admission;
    };
    const byRate = (admission: Admission): Admission | Promise<Admission> => {
      const admitting = admission.kind === 'go' && rate ? rate.admit(run) : admission;
      return admitting instanceof Promise ? admitting.then(byKeys) : byKeys(admitting);
    };
    const admitting = byTask(run);
    return admitting instanceof Promise ? admitting.then(byRate) : byRate(admitting);
  };
}

function admit(
  run: QueuedRun,
  status: 'active' | 'paused' | 'canceled',
  clock: Pick<Clock, 'now'>,
): Admission {
  if (status === 'canceled') {
    return { kind: 'end', event: { type: 'RunCanceled', data: { attempt: run.attempt } } };
  }
  if (status === 'active' || run.attempt > 0) return go;
  if (run.trigger === 'backfill')
    return { kind: 'wait', until: clock.now() + PAUSE_CHECK_INTERVAL };
  if (run.trigger !== 'schedule') return go;
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
        ...namespaceField(run.namespace),
      },
    },
  };
}
