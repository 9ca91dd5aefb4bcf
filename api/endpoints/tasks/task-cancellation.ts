import { RefusalError } from '../../../domain/errors.ts';
import type { EventStore } from '../../../domain/event-store.ts';
import type { TaskEvent } from '../../../domain/events/catalogue.ts';
import type { Handled } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { taskFold, type TaskState } from '../../../domain/tasks/task.ts';
import {
  cancelRunCommand,
  cancelTaskCommand,
  type MayChange,
} from '../../../domain/tasks/task-commands.ts';
import { unfinishedRunStates, type TaskStatus } from '../../../domain/vocabulary.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import type { Call } from '../../endpoint.ts';
import { keyPages } from '../listing.ts';

/** A task that was canceled, now or earlier. */
export interface CanceledTask extends Handled<TaskState> {
  readonly oldStatus: TaskStatus;
}

/** Cancels a task; its queued runs stay, until {@link cancelRunsOf}. */
export async function cancelTask(
  call: Pick<Call, 'dependencies' | 'context'> & Partial<Pick<Call, 'expectedRevision'>>,
  taskId: string,
  mayChange: MayChange,
): Promise<CanceledTask> {
  const { dependencies, context, expectedRevision } = call;
  const { store, tasks } = dependencies;
  const handled = await cancelTaskCommand({ store, taskId, context, mayChange, expectedRevision });
  tasks.learn(taskId, handled);
  const oldStatus = handled.events.length === 0 ? 'canceled' : await statusBefore(store, taskId);
  return { ...handled, oldStatus };
}

/**
 * Cancels the runs of a task that the view contains. Queued runs end, and running ones are asked to stop. A run that
 * the view lacks is ended by the worker that would start it.
 * @returns how many were canceled
 */
export async function cancelRunsOf(
  call: Pick<Call, 'dependencies' | 'context'>,
  taskId: string,
): Promise<number> {
  const { dependencies, context } = call;
  let canceled = 0;
  const runs = keyPages(dependencies.readModel, runsProjection, [
    { field: 'task_id', op: 'eq', value: taskId },
    { field: 'state', op: 'in', value: unfinishedRunStates },
  ]);
  for await (const page of runs) {
    for (const key of page) {
      const commandId = nameBasedId('cancel run', context.commandId, key);
      if (await cancelUnlessEnded(call, key, commandId)) canceled += 1;
    }
  }
  return canceled;
}

/** @returns whether the run was canceled; a run that has just ended stays unchanged */
async function cancelUnlessEnded(
  { dependencies, context }: Pick<Call, 'dependencies' | 'context'>,
  runId: string,
  commandId: string,
): Promise<boolean> {
  try {
    const position = await cancelRunCommand(dependencies.store, runId, { ...context, commandId });
    return position !== null;
  } catch (error) {
    if (error instanceof RefusalError && error.code === 'STATE_CONFLICT') return false;
    throw error;
  }
}

/** The status before the cancellation. Read from the log, because a repeated command finds the task canceled. */
async function statusBefore(store: EventStore, taskId: string): Promise<TaskStatus> {
  let state = taskFold.initial;
  for (const event of await store.readStream(streams.task(taskId))) {
    if (event.type === 'TaskCanceled') break;
    state = taskFold.evolve(state, event as unknown as TaskEvent, event);
  }
  return state.status === 'none' ? 'active' : state.status;
}
