import type { LiveTask } from '../../domain/tasks/task.ts';
import { idIn, type Call } from '../endpoint.ts';
import { notFound } from '../errors.ts';

/** The task with an id, canceled or not. @throws HttpError 404 */
export async function taskWithId(
  { dependencies }: Pick<Call, 'dependencies'>,
  id: string,
): Promise<LiveTask> {
  const { state } = await dependencies.tasks.get(id);
  if (state.status === 'none') throw notFound('task', id);
  return state;
}

/** The agent that `agent_id` of the path names. @returns its id @throws HttpError 404 */
export async function agentInPath(
  call: Pick<Call, 'dependencies' | 'parameters'>,
): Promise<string> {
  const id = idIn(call, 'agent_id');
  const { state } = await call.dependencies.agents.get(id);
  if (state.status !== 'registered') throw notFound('agent', id);
  return id;
}
