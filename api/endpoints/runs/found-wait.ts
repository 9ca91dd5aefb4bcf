import type { Position } from '../../../domain/event-store.ts';
import { load } from '../../../domain/handle.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { pipelineSecrets } from '../../../domain/pipeline/pipeline-secrets.ts';
import { Secrets } from '../../../domain/pipeline/secrets.ts';
import { runFold } from '../../../domain/runs/run.ts';
import { streams } from '../../../domain/streams.ts';
import { taskAt } from '../../../domain/tasks/task-at.ts';
import { waitsProjection, type WaitDocument } from '../../../projections/views/waits.ts';
import type { ApiDependencies } from '../../dependencies.ts';
import { requirePassed } from '../../positions.ts';

type Finding = Pick<ApiDependencies, 'store' | 'positions'>;

/**
 * Finds a wait in its view. If it is missing, it may just have started, so the view must first reach the log's end at
 * the time of the request.
 * @throws HttpError 503 if the view does not reach it in two seconds
 */
export async function findWait(
  dependencies: Finding,
  find: () => Promise<WaitDocument | undefined>,
): Promise<WaitDocument | undefined> {
  const found = await find();
  if (found !== undefined) return found;
  const head: Position = await dependencies.store.head();
  await requirePassed(dependencies, [waitsProjection], head);
  return find();
}

/**
 * The secrets of a run's pipeline, to mask them in the events that a call from outside appends.
 * @throws SecretError if a backend of secrets is unavailable
 */
export async function secretsOfRun(
  { store, secrets }: Pick<ApiDependencies, 'store' | 'secrets'>,
  runId: string,
): Promise<Secrets> {
  const { state } = await load(store, streams.run(runId), runFold);
  if (!('request' in state)) return new Secrets();
  const { task_id, task_revision } = state.request;
  const task = await taskAt(store, task_id, task_revision);
  return pipelineSecrets(task.definition.payload as JsonObject, task.namespace, secrets);
}
