import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { reaches } from '../../projections/reach.ts';
import { checkAdministers } from '../access/namespace-admins.ts';
import { idIn, type Call } from '../endpoint.ts';
import { notFound } from '../errors.ts';

/**
 * What was looked up by its id, unless there is none within the caller's reach: both are answered alike.
 * @throws HttpError 404
 */
export function inReach<T extends { readonly namespace?: string | undefined }>(
  { reach }: Pick<Call, 'reach'>,
  what: string,
  id: string,
  found: T | null | undefined,
): T {
  if (found == null || !reaches(reach, namespaceOf(found))) throw notFound(what, id);
  return found;
}

/** The task with an id, canceled or not. @throws HttpError 404 */
export async function taskWithId(
  call: Pick<Call, 'dependencies' | 'reach'>,
  id: string,
): Promise<LiveTask> {
  const { state } = await call.dependencies.tasks.get(id);
  return inReach(call, 'task', id, state.status === 'none' ? null : state);
}

/** As {@link agentInPath}, for its administration. @throws HttpError 404; 403 for an agent that can do more than the caller */
export async function administeredAgent(
  call: Pick<Call, 'caller' | 'dependencies' | 'parameters' | 'reach'>,
): Promise<string> {
  const id = await agentInPath(call);
  const { state } = await call.dependencies.agents.get(id);
  if (call.caller !== null && state.status === 'registered') {
    checkAdministers(call.caller, state.scopes);
  }
  return id;
}

/** The agent that `agent_id` of the path names. @returns its id @throws HttpError 404 */
export async function agentInPath(
  call: Pick<Call, 'dependencies' | 'parameters' | 'reach'>,
): Promise<string> {
  const id = idIn(call, 'agent_id');
  const { state } = await call.dependencies.agents.get(id);
  inReach(call, 'agent', id, state.status === 'registered' ? state : null);
  return id;
}
