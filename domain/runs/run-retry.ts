import { toIso } from '../clock.ts';
import { Refusal } from '../errors.ts';
import type { EventStore, Position } from '../event-store.ts';
import type { DataOf } from '../events/catalogue.ts';
import { handle, type CommandContext } from '../handle.ts';
import { eventId, retryRunId } from '../ids.ts';
import type { JsonObject } from '../json.ts';
import { compilePipeline } from '../pipeline/compile.ts';
import { jsonBytes } from '../pipeline/size.ts';
import { requestRun } from './run-request.ts';
import { finishedResults } from './run-results.ts';
import { requireRun, retryRun, runFold, type KnownRun } from './run.ts';
import { streams } from '../streams.ts';
import type { LiveTask } from '../tasks/task.ts';
import { taskAt } from '../tasks/task-at.ts';
import type { RetryStart } from '../vocabulary.ts';

/**
 * Results up to this size (JSON text, bytes) go along in the request of the new run, next to the event that may have
 * triggered it (256 KiB at most). Larger ones are taken from the stream of the run that failed.
 */
const MOST_PRIOR_BYTES = 128 * 1024;

/** A failed run that is to be retried. */
export interface RunRetry {
  readonly store: EventStore;
  readonly runId: string;
  readonly from: RetryStart;
  /** The run's task as it stands now. */
  readonly task: LiveTask;
  /** The new run's id comes from its command: a repetition completes the same retry. */
  readonly context: CommandContext;
  /** Of the run, as it was seen; undefined: whatever it is. */
  readonly expectedRevision?: number | undefined;
}

/** What became of it. */
export interface RetriedRun {
  readonly runId: string;
  readonly retryOf: string;
  readonly taskId: string;
  /** The run in whose favour the task's overlap policy lets the new one not run; it is recorded as skipped. */
  readonly overlaps: string | null;
  /** Of the last event known; reads that have passed it show the retry. */
  readonly position: Position | null;
}

/** Of which task a run is, by the first event of its stream; null for one that never was. */
export async function taskIdOfRun(store: EventStore, runId: string): Promise<string | null> {
  const [first] = await store.readStream(streams.run(runId), { limit: 1 });
  if (first?.type !== 'RunRequested' && first?.type !== 'RunSkipped') return null;
  return first.data.task_id;
}

/**
 * Retries a failed run by a new one.
 *
 * - From the failed step, it executes the revision of the task that the failed run was pinned to, with that run's
 *   finished steps: their names and results belong to that pipeline. From the start, it executes the task as it
 *   stands now, so that a mended definition counts.
 * - It sees the nominal time and the event of the run that failed, and is by itself a run by hand: a pause does not
 *   hold it back, no window of the dedupe key applies to it. Concurrency keys and the overlap policy hold.
 * - First the failed run's stream says that it is retried, then the new run is requested. A death in between
 *   leaves a run that was named and never requested: the same command requests it when repeated, and any other
 *   sees by the time that has passed that it will not come.
 *
 * @throws Refusal `STATE_CONFLICT` for a run that has not failed and for a canceled task, `REVISION_MISMATCH`,
 *   `NOT_FOUND`
 */
export async function retryFailedRun(retry: RunRetry): Promise<RetriedRun> {
  const { store, runId, from, task, context, expectedRevision } = retry;
  const newId = retryRunId(runId, context.commandId);
  const stream = streams.run(runId);
  const { state, position } = await handle({
    store,
    stream,
    fold: runFold,
    decide: (run) => {
      const events = retryRun(run, newId, from);
      if (task.status !== 'canceled') return events;
      throw new Refusal('STATE_CONFLICT', 'the task of this run is canceled', {
        status: 'canceled',
      });
    },
    context,
    expectedRevision,
  });
  const failed = requireRun(state);
  const { task_id: taskId } = failed.request;
  const isAsPinned = from === 'start' || task.revision === failed.request.task_revision;
  const pinned = isAsPinned ? task : await taskAt(store, taskId, failed.request.task_revision);
  const request = await requestFor(retry, failed, pinned);
  const requested = await requestRun(store, {
    runId: newId,
    request,
    rules: pinned.definition,
    context: { ...context, causationId: eventId(context.commandId, stream, 0) },
  });
  const retried = { runId: newId, retryOf: runId, taskId, overlaps: null, position };
  if (requested.kind === 'requested') return { ...retried, position: requested.result.position };
  if (requested.kind === 'skipped') {
    const { because_of: overlaps, result } = requested;
    return { ...retried, overlaps, position: result.position };
  }
  // Its id comes from the command: it was requested by this very command before.
  const { event } = requested;
  if (event.type === 'Abandoned') {
    throw new Refusal('STATE_CONFLICT', 'the retry was not requested in time; ask again');
  }
  return event.type === 'RunSkipped' ? { ...retried, overlaps: event.data.because_of } : retried;
}

async function requestFor(
  { store, runId, from, context }: RunRetry,
  failed: KnownRun,
  pinned: LiveTask,
): Promise<DataOf<'RunRequested'>> {
  const { task_id, scheduled_for, event, priority, trigger } = failed.request;
  const { created_by, overlap_policy } = pinned.definition;
  // What was behind all others stays there.
  const own = from === 'failed_step' || trigger === 'backfill';
  return {
    task_id,
    task_revision: pinned.revision,
    created_by,
    trigger: 'manual',
    scheduled_for,
    priority: own ? priority : pinned.definition.priority,
    run_at: toIso(context.now),
    event,
    retry_of: runId,
    overlap_policy,
    ...(from === 'start' ? { prior_steps: [] } : await resultsFor(store, runId, failed, pinned)),
  };
}

async function resultsFor(
  store: EventStore,
  runId: string,
  failed: KnownRun,
  { definition }: LiveTask,
): Promise<Pick<DataOf<'RunRequested'>, 'prior_steps' | 'prior_results'>> {
  const pipeline = compilePipeline(definition.payload as JsonObject);
  const finished = await finishedResults(store, failed, pipeline);
  if (jsonBytes(finished) <= MOST_PRIOR_BYTES) return { prior_steps: [...finished] };
  return { prior_steps: [], prior_results: { run_id: runId, steps: finished.length } };
}
