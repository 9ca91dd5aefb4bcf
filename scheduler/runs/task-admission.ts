import type { Clock } from '../../domain/clock.ts';
import { requireTask, type LiveTask } from '../../domain/tasks/task.ts';
import type { KeyKeeper } from '../keys/key-keeper.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { Admission } from './run-work.ts';
import type { QueuedRun } from './run-queue.ts';

const go: Admission = { kind: 'go' };

/** Milliseconds until it is seen again whether a task is paused whose backfill waits for it. */
const PAUSED = 5000;

/**
 * Whether the task of a run still wants it: a scheduled run does not begin while its task is paused, one of a
 * backfill waits for that to end, and no run begins whose task is canceled.
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

/** First whether the task still wants the run, then whether the run has its keys: a run that is over needs none. */
export function runAdmission(
  tasks: PinnedTasks,
  keys: KeyKeeper,
  clock: Pick<Clock, 'now'>,
): (run: QueuedRun, task: LiveTask) => Admission | Promise<Admission> {
  const byTask = taskAdmission(tasks, clock);
  return (run, task) => {
    const wanted = byTask(run);
    const then = (admission: Admission): Admission | Promise<Admission> => {
      if (admission.kind === 'go') return keys.admit(run, task);
      if (admission.kind === 'wait') keys.putOff(run, task);
      return admission;
    };
    return wanted instanceof Promise ? wanted.then(then) : then(wanted);
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
  if (run.trigger === 'backfill') return { kind: 'wait', until: clock.now() + PAUSED };
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
      },
    },
  };
}
