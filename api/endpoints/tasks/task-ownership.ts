import { agentFold, type AgentState } from '../../../domain/agents/agent.ts';
import { ownerDenial, startDenial, type Denial } from '../../../domain/agents/permissions.ts';
import { load } from '../../../domain/handle.ts';
import { nameBasedId } from '../../../domain/ids.ts';
import { DEFAULT_NAMESPACE } from '../../../domain/namespaces/namespace.ts';
import { streams } from '../../../domain/streams.ts';
import { requireTask, type LiveTask } from '../../../domain/tasks/task.ts';
import { reaches } from '../../../projections/reach.ts';
import type { Call } from '../../endpoint.ts';
import { HttpError, badRequest, forbidden } from '../../errors.ts';
import { inReach } from '../lookup.ts';
import { cancelTask } from './task-cancellation.ts';

type Calling = Pick<Call, 'caller' | 'reach' | 'own'>;

/** The agent and the namespace to whose limits a task's runs count. */
export function ownerOf({ definition, namespace }: LiveTask): {
  readonly agent: string;
  readonly namespace: string;
} {
  return { agent: definition.created_by, namespace };
}

/** @returns whether the caller may change a task. An admin may change any task, others their own */
export function owns({ caller, reach }: Calling): (task: LiveTask) => boolean {
  return ({ definition, namespace }) =>
    reaches(reach, namespace) &&
    (caller === null || caller.admin || definition.created_by === caller.agentId);
}

/** @param id of the task @returns a check that throws HttpError 404 for a task out of reach, 403 for another agent's */
export function mayChange(call: Calling, id: string): (task: LiveTask) => void {
  return (task) => {
    inReach(call, 'task', id, task);
    if (!owns(call)(task)) throw notOwned(call, "another agent's task");
  };
}

/**
 * The task of a run or a backfill. These belong to the task's present owner, regardless of who requested them.
 * @throws HttpError 403 for another agent's task
 */
export async function ownedTaskOf(
  call: Calling & Pick<Call, 'dependencies'>,
  what: 'run' | 'backfill',
  taskId: string,
): Promise<LiveTask> {
  const task = requireTask((await call.dependencies.tasks.get(taskId)).state);
  if (!owns(call)(task)) throw notOwned(call, `a ${what} of another agent's task`);
  return task;
}

function notOwned({ caller }: Calling, what: string): HttpError {
  return forbidden(`this is ${what}`, ['admin'], caller?.scopes ?? []);
}

/**
 * The owner must be the caller; an admin may name any existing agent.
 * @returns the owner's namespace
 * @throws HttpError 403, 400
 */
export async function checkOwner(
  { caller, dependencies, reach }: Pick<Call, 'caller' | 'dependencies' | 'reach'>,
  owner: string,
): Promise<string> {
  if (caller === null || owner === caller.agentId) return caller?.namespace ?? DEFAULT_NAMESPACE;
  if (!caller.admin) {
    throw forbidden('created_by: must be the caller', ['admin'], caller.scopes);
  }
  const { state } = await dependencies.agents.get(owner);
  if (state.status !== 'registered' || !reaches(reach, state.namespace)) {
    throw badRequest([{ field: 'created_by', issue: 'is not an agent' }]);
  }
  const denial = ownerDenial(owner, state);
  if (denial !== null) throw badRequest([{ field: 'created_by', issue: denial.why }]);
  return state.namespace;
}

/**
 * Like {@link checkOwner}, for an existing task, whose new owner must be in its namespace.
 * @throws HttpError 403, 400
 */
export async function checkNewOwner(
  call: Pick<Call, 'caller' | 'dependencies' | 'reach'>,
  { namespace }: LiveTask,
  owner: string,
): Promise<void> {
  if ((await checkOwner(call, owner)) === namespace) return;
  throw badRequest([
    { field: 'created_by', issue: `is not an agent of the namespace ${namespace}` },
  ]);
}

/**
 * Rejects a command that would start something for an agent that may not run anything now, such as a run or the
 * resumption of a task.
 * @param rule the check; default: whether anything may start
 * @throws HttpError 409 with the reason
 */
export async function requirePermittedOwner(
  { dependencies }: Pick<Call, 'dependencies'>,
  owner: string,
  rule: (agentId: string, agent: AgentState) => Denial | null = startDenial,
): Promise<void> {
  // Like the state of the caller, the owner's state may lag by a few milliseconds. No run of a
  // disabled agent starts even then, because each start is checked.
  const { state } = await dependencies.agents.get(owner);
  const denial = rule(owner, state);
  if (denial === null) return;
  const details = { created_by: owner, reason: denial.code };
  throw new HttpError('conflict', `not possible: ${denial.why}`, details);
}

/** A changed task must have an owner, because the change may make the task active. @throws HttpError 409 */
export async function requireOwner(
  { caller, dependencies }: Pick<Call, 'caller' | 'dependencies'>,
  owner: string,
): Promise<void> {
  if (owner === caller?.agentId) return;
  const { state } = await dependencies.agents.get(owner);
  if (state.status === 'registered') return;
  const message = 'the agent of the task was removed; set created_by to another agent';
  throw new HttpError('conflict', message, { created_by: owner });
}

/**
 * Cancels a task whose owner was removed while the task was created, changed or handed over.
 * @throws HttpError 409 if so
 */
export async function cancelOrphan(
  call: Pick<Call, 'dependencies' | 'context'>,
  taskId: string,
  owner: string,
): Promise<void> {
  // Read from the log, because the state in memory may be older than the task.
  const { state } = await load(call.dependencies.store, streams.agent(owner), agentFold);
  if (state.status === 'registered') return;
  // This needs its own command id, because the command that created the task has already appended
  // to its stream.
  const commandId = nameBasedId('cancel-orphan', call.context.commandId);
  await cancelTask({ ...call, context: { ...call.context, commandId } }, taskId, () => {});
  const details = { task_id: taskId, created_by: owner };
  throw new HttpError('conflict', 'the agent was removed meanwhile; the task is canceled', details);
}
