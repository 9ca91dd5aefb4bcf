import { requireTask, type LiveTask } from '../../../domain/tasks/task.ts';
import type { Call } from '../../endpoint.ts';
import { badRequest, forbidden, type HttpError } from '../../errors.ts';

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
