import type { Denial } from '../../domain/agents/permissions.ts';
import type { Clock } from '../../domain/clock.ts';
import { requireTask, type LiveTask } from '../../domain/tasks/task.ts';
import type { RunRate } from '../fairness/run-rate.ts';
import { anyOwner, type Owners } from '../owners/owners.ts';
import type { KeySemaphore } from '../keys/key-semaphore.ts';
import { namespaceField } from '../../domain/namespaces/namespace.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { Admission } from './run-work.ts';
import type { QueuedRun } from './queued-run.ts';

const go: Admission = { kind: 'go' };

/**
 * The interval at which a waiting run checks whether its task is still paused or its agent still disabled.
 * Milliseconds.
 */
const PAUSE_CHECK_INTERVAL = 5000;

/**
 * Admits a run by its agent's state and its task's status. While the agent is disabled, no run starts. The disabling
 * decides whether runs wait or are all canceled. While the task is paused or its agent may not have it, a scheduled run
 * is skipped and a backfill run waits. Runs of a canceled task are canceled.
 */
export function taskAdmission(
  tasks: PinnedTasks,
  clock: Pick<Clock, 'now'>,
  owners: Owners = anyOwner,
): (run: QueuedRun) => Admission | Promise<Admission> {
  return (run) => {
    const latest = tasks.latest(run.taskId);
    const start = owners.startDenial(run.createdBy);
    const step = owners.stepDenial(run.createdBy);
    if (latest instanceof Promise || start instanceof Promise || step instanceof Promise) {
      return Promise.all([latest, start, step]).then(([task, toStart, toContinue]) =>
        admit(run, requireTask(task).status, { toStart, toContinue }, clock),
      );
    }
    return admit(run, latest.status, { toStart: start, toContinue: step }, clock);
  };
}

/** Says why a run may not start or continue. */
interface Denials {
  readonly toStart: Denial | null;
  readonly toContinue: Denial | null;
}

/** Further conditions for admission. Defaults: no quota, and every owner. */
interface AdmissionOptions {
  readonly rate?: Pick<RunRate, 'admit'> | undefined;
  readonly owners?: Owners | undefined;
}

/** Admits a run by its agent's state and its task's status, then by the quota of its namespace, then by its keys. */
export function runAdmission(
  tasks: PinnedTasks,
  keys: Pick<KeySemaphore, 'admit' | 'postpone'>,
  clock: Pick<Clock, 'now'>,
  { rate, owners }: AdmissionOptions = {},
): (run: QueuedRun, task: LiveTask) => Admission | Promise<Admission> {
  const byTask = taskAdmission(tasks, clock, owners);
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
  { toStart, toContinue }: Denials,
  clock: Pick<Clock, 'now'>,
): Admission {
  if (status === 'canceled' || toContinue?.code === 'agent_disabled') {
    return { kind: 'end', event: { type: 'RunCanceled', data: { attempt: run.attempt } } };
  }
  if (run.attempt > 0) return go;
  const wait = { kind: 'wait', until: clock.now() + PAUSE_CHECK_INTERVAL } as const;
  if (toStart?.code === 'agent_disabled') return wait;
  if (status === 'active' && toStart === null) return go;
  if (run.trigger === 'backfill') return wait;
  // Without that right, a manual run or a run of an event fails when it starts, with the reason as
  // its error.
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
