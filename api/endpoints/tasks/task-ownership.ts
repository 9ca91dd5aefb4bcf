import { agentFold } from '../../../domain/agents/agent.ts';
import { load } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { requireTask, type LiveTask } from '../../../domain/tasks/task.ts';
import type { Call } from '../../endpoint.ts';
import { HttpError, badRequest, forbidden } from '../../errors.ts';
import { cancelTask } from './task-cancellation.ts';

type Calling = Pick<Call, 'caller'>;

/** @returns whether a task is the caller's to change: with `admin` any is, else only its own */
export function owns({ caller }: Calling): (task: LiveTask) => boolean {
  return ({ definition }) =>
    caller === null || caller.admin || definition.created_by === caller.agentId;
}

/** @returns refuses what is done to another agent's task: throws HttpError 403 where the caller does not {@link owns} it */
export function mayChange(call: Calling): (task: LiveTask) => void {
  return (task) => {
    if (!owns(call)(task)) throw anothers(call, "another agent's task");
  };
}

/**
 * Refuses what is done to a run or a backfill of another agent's task. Both belong to whoever the task belongs to now,
 * and not to whom it belonged to when they were requested: who is handed a task is handed what it has left behind.
 * @returns the task
 * @throws HttpError 403
 */
export async function ownedTaskOf(
  call: Calling & Pick<Call, 'dependencies'>,
  what: 'run' | 'backfill',
  taskId: string,
): Promise<LiveTask> {
  const task = requireTask((await call.dependencies.tasks.get(taskId)).state);
  if (!owns(call)(task)) throw anothers(call, `a ${what} of another agent's task`);
  return task;
}

function anothers({ caller }: Calling, what: string): HttpError {
  return forbidden(`this is ${what}`, ['admin'], caller?.scopes ?? []);
}

/** Whom a task is to belong to: oneself, or for an admin any agent that exists. @throws HttpError 403, 400 */
export async function checkOwner(
  { caller, dependencies }: Pick<Call, 'caller' | 'dependencies'>,
  owner: string,
): Promise<void> {
  if (caller === null || owner === caller.agentId) return;
  if (!caller.admin) {
    throw forbidden('created_by must be the caller', ['admin'], caller.scopes);
  }
  const { state } = await dependencies.agents.get(owner);
  if (state.status !== 'registered') {
    throw badRequest([{ field: 'created_by', issue: 'is not an agent' }]);
  }
}

/** That a task that is changed belongs to somebody, as it may be brought back to life by that. @throws HttpError 409 */
export async function requireOwner(
  { caller, dependencies }: Pick<Call, 'caller' | 'dependencies'>,
  owner: string,
): Promise<void> {
  if (owner === caller?.agentId) return;
  const { state } = await dependencies.agents.get(owner);
  if (state.status === 'registered') return;
  const message = 'its agent has been removed: give it to another one by created_by';
  throw new HttpError('conflict', message, { created_by: owner });
}

/**
 * Cancels a task whose owner was removed while it was created, changed or handed over: those that the owner had by then
 * are canceled with it.
 * @throws HttpError 409 where that was so
 */
export async function cancelOrphan(
  call: Pick<Call, 'dependencies' | 'context'>,
  taskId: string,
  owner: string,
): Promise<void> {
  // From the log: what is known of agents here may be older than the task.
  const { state } = await load(call.dependencies.store, streams.agent(owner), agentFold);
  if (state.status === 'registered') return;
  // A command of its own: by the one that made the task nothing would be appended to it any more.
  const commandId = nameBasedId('cancel-orphan', call.context.commandId);
  await cancelTask({ ...call, context: { ...call.context, commandId } }, taskId, () => {});
  const details = { task_id: taskId, created_by: owner };
  throw new HttpError('conflict', 'its agent was removed meanwhile: the task is canceled', details);
}
