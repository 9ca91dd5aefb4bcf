import { RefusalError } from '../../domain/errors.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { JsonObject } from '../../domain/json.ts';
import { defaultParams, mergeParams } from '../../domain/pipeline/params.ts';
import { pipelineSecrets, type SecretValues } from '../../domain/pipeline/pipeline-secrets.ts';
import { SecretError } from '../../domain/secrets/secret-source.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { RunDocument } from '../../projections/views/runs.ts';

/** The dependencies for showing the params of runs. */
export interface ParamsSource {
  /** Tasks at the revisions that runs are pinned to. */
  readonly pinnedTasks: {
    /** The task, if it is in memory. */
    peek(taskId: string, revision: number): LiveTask | undefined;
    /** @throws RefusalError `NOT_FOUND`; EventStoreError */
    at(taskId: string, revision: number): Promise<LiveTask>;
  };
  /** Values to mask. */
  readonly secrets: SecretValues;
}

/**
 * The params that a run's expressions see, with the values of the pipeline's secrets masked.
 * @returns null if the task or its secrets can't be read; the run is then shown without params
 */
export function shownParams(
  source: ParamsSource,
  run: RunDocument,
): JsonObject | null | Promise<JsonObject | null> {
  const task = pinnedTask(source, run);
  if (!(task instanceof Promise)) return task && paramsOf(source, task, run);
  return task.then((read) => read && paramsOf(source, read, run));
}

/** The task that a run executes, at once if it is in memory; null if it can't be read. */
export function pinnedTask(
  { pinnedTasks }: Pick<ParamsSource, 'pinnedTasks'>,
  { task_id, task_revision }: RunDocument,
): LiveTask | null | Promise<LiveTask | null> {
  const known = pinnedTasks.peek(task_id, task_revision);
  if (known !== undefined) return known;
  return pinnedTasks.at(task_id, task_revision).catch((error: unknown) => {
    if (error instanceof EventStoreError || error instanceof RefusalError) return null;
    throw error;
  });
}

function paramsOf(
  { secrets }: Pick<ParamsSource, 'secrets'>,
  task: LiveTask,
  // Documents of an older shape lack them.
  { params: given = null }: Partial<RunDocument>,
): JsonObject | null | Promise<JsonObject | null> {
  const payload = task.definition.payload as JsonObject;
  const params = mergeParams(defaultParams(payload), given);
  if (Object.keys(params).length === 0) return params;
  const masking = pipelineSecrets(payload, task.namespace, secrets);
  if (!(masking instanceof Promise)) return masking.mask(params) as JsonObject;
  return masking.then(
    (known) => known.mask(params) as JsonObject,
    (error: unknown) => {
      if (error instanceof SecretError) return null;
      throw error;
    },
  );
}
