import { namespaceOf } from '../../domain/namespaces/namespace.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { reaches } from '../../projections/reach.ts';
import type { Filter } from '../../projections/read-model.ts';
import { tasksProjection } from '../../projections/views/tasks.ts';
import { checkAdministers } from '../access/namespace-admins.ts';
import { idIn, type Call } from '../endpoint.ts';
import { notFound } from '../errors.ts';
import { keyPages } from './listing.ts';

/** The part of a call that determines what the caller sees. */
export type Seeing = Pick<Call, 'reach' | 'own'>;

/**
 * Returns a record that was looked up by its id. If the caller may not see the record, the response is the same as if
 * it did not exist.
 * @throws HttpError 404
 */
export function inReach<
  T extends { readonly namespace?: string | undefined; readonly created_by?: string },
>({ reach, own }: Seeing, what: string, id: string, found: T | null | undefined): T {
  if (found === null || found === undefined || !reaches(reach, namespaceOf(found)))
    throw notFound(what, id);
  if (own !== null && found.created_by !== own) throw notFound(what, id);
  return found;
}

/** The task with an id, even if it is canceled. @throws HttpError 404 */
export async function taskWithId(
  call: Pick<Call, 'dependencies'> & Seeing,
  id: string,
): Promise<LiveTask> {
  const { state } = await call.dependencies.tasks.get(id);
  if (state.status === 'none') throw notFound('task', id);
  const { namespace, definition } = state;
  inReach(call, 'task', id, { namespace, created_by: definition.created_by });
  return state;
}

/** The id of the task that `task_id` of the path names. @throws HttpError 404 for an unknown task */
export async function taskInPath(
  call: Pick<Call, 'dependencies' | 'parameters'> & Seeing,
): Promise<string> {
  const id = idIn(call, 'task_id');
  await taskWithId(call, id);
  return id;
}

/**
 * Like {@link agentInPath}, for administering the agent.
 * @throws HttpError 404; 403 for an agent with more scopes than the caller
 */
export async function administeredAgent(
  call: Pick<Call, 'caller' | 'dependencies' | 'parameters'> & Seeing,
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
  call: Pick<Call, 'dependencies' | 'parameters'> & Seeing,
): Promise<string> {
  const id = idIn(call, 'agent_id');
  const { state } = await call.dependencies.agents.get(id);
  inReach(call, 'agent', id, state.status === 'registered' ? state : null);
  return id;
}

/** The filter for the caller's own tasks. There is no filter for a caller that also sees other tasks. */
export async function ownTasks({
  dependencies,
  own,
}: Pick<Call, 'dependencies' | 'own'>): Promise<readonly Filter[]> {
  if (own === null) return [];
  const tasks: string[] = [];
  const filters: readonly Filter[] = [{ field: 'created_by', op: 'eq', value: own }];
  for await (const page of keyPages(dependencies.readModel, tasksProjection, filters)) {
    tasks.push(...page);
  }
  return [{ field: 'task_id', op: 'in', value: tasks }];
}
