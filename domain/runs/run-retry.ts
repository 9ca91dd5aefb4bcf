import { copyArtifacts, type ArtifactKeeping } from '../artifacts/keep-result.ts';
import { toIso } from '../clock.ts';
import { RefusalError } from '../errors.ts';
import type { EventStore, Position } from '../event-store.ts';
import { handle, type CommandContext } from '../handle.ts';
import { eventId, retryRunId } from '../ids.ts';
import type { JsonObject } from '../json.ts';
import { namespaceOf } from '../namespaces/namespace.ts';
import { compilePipeline } from '../pipeline/compile.ts';
import { jsonBytes } from '../pipeline/json-size.ts';
import { requestCommandedRun, runRequestOf, type RunCause } from './run-request.ts';
import { endsBefore } from './retry-step.ts';
import { finishedResults } from './run-results.ts';
import { requireRun, retryRun, runFold, type KnownRun } from './run.ts';
import { streams } from '../streams.ts';
import type { LiveTask } from '../tasks/task.ts';
import { taskAt } from '../tasks/task-at.ts';
import { referToPayload } from '../topics/stored-payload.ts';
import type { RetryStart } from '../vocabulary.ts';

/**
 * Results up to this size (bytes of JSON) go into the new run's request, next to the event that may have triggered it
 * (256 KiB at most). Larger ones are read from the failed run's stream.
 */
const MAX_PRIOR_BYTES = 128 * 1024;

/** A failed run that is to be retried. */
export interface RunRetry {
  readonly store: EventStore;
  readonly runId: string;
  readonly from: RetryStart;
  /** The step of the run's pipeline to start with; results of earlier steps are reused. Default: the failed step. */
  readonly step?: string | undefined;
  /** The run's task as it is now. */
  readonly task: LiveTask;
  /** The new run's id derives from this command, so repeating the command completes the same retry. */
  readonly context: CommandContext;
  /** Copies the artifacts of the reused results to the new run. Default: there are none. */
  readonly artifacts?: ArtifactKeeping | undefined;
  /**
   * The params of the new run, already checked against the task that it executes. undefined: those of the failed run.
   */
  readonly params?: JsonObject | undefined;
  /** The run's revision as the caller saw it; undefined: any. */
  readonly expectedRevision?: number | undefined;
}

/** The result of a retry. */
export interface RetriedRun {
  readonly runId: string;
  readonly retryOf: string;
  readonly taskId: string;
  /** The run because of which the overlap policy skips the new one, which is recorded as skipped. */
  readonly overlaps: string | null;
  /** The position of the last known event. A view that has passed it shows the retry. */
  readonly position: Position | null;
}

/** The request of a run, from the first event of its stream; null for a run that was never requested. */
export async function requestOfRun(
  store: EventStore,
  runId: string,
): Promise<{
  readonly namespace: string;
  readonly taskId: string;
  readonly taskRevision: number;
  readonly params: JsonObject | undefined;
} | null> {
  const [first] = await store.readStream(streams.run(runId), { limit: 1 });
  if (first?.type !== 'RunRequested' && first?.type !== 'RunSkipped') return null;
  const { task_id: taskId, task_revision: taskRevision, params } = first.data;
  return {
    namespace: namespaceOf(first.data),
    taskId,
    taskRevision,
    params: params as JsonObject | undefined,
  };
}

/**
 * Retries a failed run by a new one.
 *
 * - From the failed step, it executes the task revision that the failed run was pinned to, with that run's finished
 *   steps, because their names and results belong to that pipeline. From another step, it reuses the results of earlier
 *   steps. From the start, it executes the present task, so a corrected definition takes effect.
 * - It has the nominal time and the event of the failed run. It is a manual run, so pauses and the dedupe key do not
 *   apply. Concurrency keys and the overlap policy do.
 * - It keeps the failed run's depth: retrying a run of a loop does not make the loop longer.
 * - The failed run's stream first records the retry, so that retention keeps the run. A stored payload of its event is
 *   then noted as needed, and the new run is requested. A crash in between leaves a run that is named but not
 *   requested. Repeating the command requests it; after a minute, other commands consider it lost.
 *
 * @throws RefusalError `STATE_CONFLICT` for a run that has not failed and for a canceled task, `REVISION_MISMATCH`,
 *   `NOT_FOUND`; ArtifactError
 */
export async function retryFailedRun(retry: RunRetry): Promise<RetriedRun> {
  const { store, runId, from, step, task, context, expectedRevision } = retry;
  const newId = retryRunId(runId, context.commandId);
  const stream = streams.run(runId);
  const { state, position } = await handle({
    store,
    stream,
    fold: runFold,
    decide: (run) => {
      const events = retryRun(run, newId, from, step);
      if (task.status !== 'canceled') return events;
      const details = { status: 'canceled' };
      throw new RefusalError('STATE_CONFLICT', 'the task of this run is canceled', details);
    },
    context,
    expectedRevision,
  });
  const failed = requireRun(state);
  const { task_id: taskId } = failed.request;
  const isAsPinned = from === 'start' || task.revision === failed.request.task_revision;
  const pinned = isAsPinned ? task : await taskAt(store, taskId, failed.request.task_revision);
  const { event, namespace } = failed.request;
  await referToPayload(store, event, { id: newId, namespace }, context);
  const cause = await causeOf(retry, failed, pinned);
  const { result, skip } = await requestCommandedRun(store, {
    runId: newId,
    request: runRequestOf({ ...pinned, id: taskId }, cause),
    rules: pinned.definition,
    context: {
      ...context,
      causationId: eventId(context.commandId, stream, 0),
      depth: Math.max(failed.depth, context.depth ?? 0),
    },
  });
  return {
    runId: newId,
    retryOf: runId,
    taskId,
    overlaps: skip?.because_of ?? null,
    position: result?.position ?? position,
  };
}

async function causeOf(retry: RunRetry, failed: KnownRun, pinned: LiveTask): Promise<RunCause> {
  const { runId, from, context, params: given } = retry;
  const { scheduled_for, event, priority, trigger } = failed.request;
  // A backfill's run keeps its low priority.
  const keepsPriority = from === 'failed_step' || trigger === 'backfill';
  const cause = { scheduled_for, event, run_at: toIso(context.now), retry_of: runId };
  const params = given ?? failed.request.params;
  return {
    ...cause,
    ...(params === null ? {} : { params }),
    trigger: 'manual',
    priority: keepsPriority ? priority : pinned.definition.priority,
    ...(from === 'start' ? {} : await resultsFor(retry, failed, pinned)),
  };
}

async function resultsFor(
  { store, runId, step, context, artifacts }: RunRetry,
  failed: KnownRun,
  { definition }: LiveTask,
): Promise<Pick<RunCause, 'prior_steps' | 'prior_results'>> {
  const pipeline = compilePipeline(definition.payload as JsonObject);
  const all = await finishedResults(store, failed, pipeline);
  const finished = step === undefined ? all : endsBefore(pipeline, all, step);
  const newId = retryRunId(runId, context.commandId);
  await copyArtifacts(artifacts, finished, runId, newId);
  if (jsonBytes(finished) <= MAX_PRIOR_BYTES) return { prior_steps: [...finished] };
  const before = step === undefined ? {} : { before: step };
  return { prior_results: { run_id: runId, steps: finished.length, ...before } };
}
