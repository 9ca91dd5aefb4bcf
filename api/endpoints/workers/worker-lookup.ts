import type { RegisteredWorker } from '../../../domain/workers/worker.ts';
import { replacedWorker } from '../../../domain/workers/worker.ts';
import { reaches } from '../../../projections/reach.ts';
import type { Call } from '../../endpoint.ts';
import { idIn } from '../../endpoint.ts';
import { HttpError, forbidden, notFound } from '../../errors.ts';

/** How long to wait until the directory knows a worker that registered through another process. Milliseconds. */
const MAX_LAG = 2000;

/**
 * The worker in the path, which must be the caller's.
 * @throws HttpError 404 for an unknown worker, 403 for another agent's worker; RefusalError `STATE_CONFLICT` for a
 *   worker that was replaced
 */
export async function workerInPath(call: Call<unknown, unknown>): Promise<RegisteredWorker> {
  return registered(call, await ownWorkerInPath(call));
}

/** Like {@link workerInPath}, but operators may name any worker of the namespace. */
export async function drainableWorkerInPath(
  call: Call<unknown, unknown>,
): Promise<RegisteredWorker> {
  const id = isOperator(call) ? (await ownedWorkerInPath(call)).id : await ownWorkerInPath(call);
  return registered(call, id);
}

/** Whether the caller sees and drains the workers of all agents of its namespace. */
export const isOperator = ({ caller }: Call<unknown, unknown>): boolean =>
  caller?.admin === true || caller?.scopes.includes('ops') === true;

function registered(call: Call<unknown, unknown>, id: string): RegisteredWorker {
  const worker = call.dependencies.workers.find(id);
  if (worker === null) throw notFound('worker', id);
  if (worker === 'replaced') throw replacedWorker(id);
  return worker;
}

/**
 * The id of the worker in the path, which must belong to the caller but may have been replaced.
 * @throws HttpError 404 for a worker that is unknown or in another namespace, 403 for another agent's
 */
export async function ownWorkerInPath(call: Call<unknown, unknown>): Promise<string> {
  const { caller } = call;
  const { id, agentId } = await ownedWorkerInPath(call);
  if (agentId === caller?.agentId) return id;
  const message = `worker ${id} belongs to another agent; only that agent can use it`;
  throw forbidden(message, ['jobs:work'], caller?.scopes ?? []);
}

/** @throws HttpError 404 for a worker that is unknown or in another namespace */
async function ownedWorkerInPath(
  call: Call<unknown, unknown>,
): Promise<{ readonly id: string; readonly agentId: string }> {
  const { workers, clock } = call.dependencies;
  const id = idIn(call, 'worker_id');
  if (workers.ownerOf(id) === null) await workers.catchUp(clock, MAX_LAG);
  const owner = workers.ownerOf(id);
  if (owner === null || !reaches(call.reach, owner.namespace)) throw notFound('worker', id);
  return { id, agentId: owner.agent_id };
}

/**
 * Like {@link workerInPath}, for a worker that may have jobs.
 * @throws also HttpError 409 for a worker that is drained or silent
 */
export async function activeWorkerInPath(call: Call<unknown, unknown>): Promise<RegisteredWorker> {
  const worker = await workerInPath(call);
  const { id, state } = worker;
  if (state === 'active') return worker;
  const message = `worker ${id} is ${state} and gets no more jobs; register again`;
  throw new HttpError('conflict', message, { worker_id: id, reason: state });
}
