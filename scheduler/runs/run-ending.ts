import { fromIso, toIso, type Clock, type Instant } from '../../domain/clock.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { DataOf, RunEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { DEFAULT_NAMESPACE, namespaceField } from '../../domain/namespaces/namespace.ts';
import { withResultNames } from '../../domain/runs/run-output.ts';
import {
  canceledEvent,
  deadlineOf,
  timeoutError,
  retryTime,
  timeOutRun,
  type KnownRun,
} from '../../domain/runs/run.ts';
import { evolveWaits, stopWaits, type Wait } from '../../domain/runs/run-waits.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import type { AbortCause, PipelineOutcome } from './run-work.ts';

interface AttemptFailure {
  readonly error: string;
  readonly step: string | null;
  /** When the next attempt starts; null if there is none. */
  readonly retryAt: Instant | null;
}

/** An attempt that is over. */
export interface EndedAttempt {
  readonly taskId: string;
  readonly attempt: number;
  readonly worker: string;
  /** The first start of the run. */
  readonly startedAt: string;
  /** The run's waits, as recorded. */
  readonly waits: readonly Wait[];
  readonly clock: Pick<Clock, 'now'>;
  readonly random: () => number;
}

/** The end of an admitted run that must not start because it is canceled or has timed out. Empty for other runs. */
export function endsUnstarted(
  run: KnownRun,
  { definition }: LiveTask,
  now: Instant,
): readonly RunEvent[] {
  const payload = definition.payload as JsonObject;
  if (run.cancel_requested) return [...stopWaits(run.waits), canceledEvent(run, payload)];
  const { timeout_seconds: limit } = definition;
  const deadline = deadlineOf(run, limit);
  return limit === null || deadline === null || now < deadline
    ? []
    : timeOutRun(run, limit, payload);
}

/**
 * The events at the end of an attempt; none if another process has the run.
 *
 * @param cause why the work was stopped; null if it was not
 */
export function endingEvents(
  task: LiveTask,
  outcome: PipelineOutcome,
  cause: AbortCause | null,
  of: EndedAttempt,
): readonly RunEvent[] {
  const { attempt, taskId, startedAt } = of;
  const before = outcome.before ?? [];
  if (outcome.kind === 'succeeded') {
    const { output } = outcome;
    const steps = outcome.steps.slice();
    // Written without a spread, which takes several times as long and executes for each run.
    const data: DataOf<'RunSucceeded'> = {
      task_id: taskId,
      started_at: startedAt,
      attempt,
      steps,
      output,
    };
    if (task.namespace !== DEFAULT_NAMESPACE) data.namespace = task.namespace;
    const end = { type: 'RunSucceeded', data } as const;
    return before.length === 0 ? [end] : [...before, end];
  }
  if (cause === 'fenced') return [];
  const recorded: readonly RunEvent[] = [
    ...before,
    ...outcome.steps.map((step) => ({ type: 'RunStepCompleted' as const, data: step })),
  ];
  const isSuspended = outcome.kind === 'suspended' && cause !== 'canceled' && cause !== 'timeout';
  if (isSuspended) return [...recorded, { type: 'RunReleased', data: { worker: of.worker } }];
  if (cause === 'drained' && outcome.kind === 'aborted') {
    const data = { worker: of.worker, cause: 'drained' as const };
    return [...recorded, { type: 'RunInterrupted', data }];
  }
  const stopped = stopWaits(recorded.reduce(evolveWaits, of.waits));
  const known = 'output' in outcome ? outcome.output : {};
  const output = withResultNames(known, task.definition.payload as JsonObject);
  if (cause === 'canceled') {
    return [...recorded, ...stopped, { type: 'RunCanceled', data: { attempt, output } }];
  }
  const { error, step, retryAt } = failureOf(task, outcome, cause, of);
  if (retryAt !== null) {
    const retry_at = toIso(retryAt);
    const data = { attempt, error, step, retry_at };
    return [...recorded, ...stopped, { type: 'RunAttemptFailed', data }];
  }
  const ended = {
    task_id: taskId,
    started_at: startedAt,
    attempt,
    ...namespaceField(task.namespace),
  };
  const steps = [...outcome.steps];
  const end: RunEvent = { type: 'RunFailed', data: { ...ended, error, step, steps, output } };
  return before.length + stopped.length === 0 ? [end] : [...before, ...stopped, end];
}

function failureOf(
  { definition }: LiveTask,
  outcome: Exclude<PipelineOutcome, { kind: 'succeeded' }>,
  cause: AbortCause | null,
  of: EndedAttempt,
): AttemptFailure {
  if (cause === 'timeout') {
    return { error: timeoutError(definition.timeout_seconds ?? 0), step: null, retryAt: null };
  }
  if (outcome.kind !== 'failed') {
    return { error: 'the run was stopped', step: null, retryAt: null };
  }
  return afterFailure(outcome, definition, of);
}

/** The `status` label of an event that ends an attempt. */
const statusOf = (event: RunEvent): string =>
  ({
    RunSucceeded: 'succeeded',
    RunFailed: 'failed',
    RunCanceled: 'canceled',
    RunAttemptFailed: 'retrying',
    RunInterrupted: 'interrupted',
  })[event.type as string] ?? 'other';

/** Updates the metrics at the end of an attempt. @param startedAt the run's first start */
export function recordEnd(
  { telemetry, clock }: { readonly telemetry: Telemetry; readonly clock: Clock },
  event: RunEvent,
  startedAt: string,
): void {
  if (event.type === 'RunReleased') return;
  const status = statusOf(event);
  telemetry.count('task_executions_total', { status });
  const seconds = (clock.now() - fromIso(startedAt)) / 1000;
  telemetry.observe('task_execution_seconds', Math.max(0, seconds), { status });
}

/** A permanent failure that no step caused. */
export const permanentFailure = (error: string): PipelineOutcome => {
  return { kind: 'failed', error, step: null, retryable: false, steps: [], output: {} };
};

/**
 * When the next attempt of a failed run starts, or null if there is none. An attempt after the run's deadline is
 * dropped, and the error says so.
 */
function afterFailure(
  outcome: Extract<PipelineOutcome, { kind: 'failed' }>,
  definition: TaskDefinition,
  of: Pick<EndedAttempt, 'attempt' | 'startedAt' | 'clock' | 'random'>,
): AttemptFailure {
  const { error, step, retryable, retryAfterMs } = outcome;
  if (!retryable) return { error, step, retryAt: null };
  const { attempt, startedAt, clock, random } = of;
  const limit = definition.timeout_seconds;
  const deadline = limit === null ? null : fromIso(startedAt) + limit * 1000;
  const retryAt = retryTime(attempt, definition, clock.now(), random, retryAfterMs, deadline);
  if (retryAt !== null || attempt > definition.max_retries) return { error, step, retryAt };
  const why = `the run's timeout of ${limit} s ends before its next attempt`;
  return { error: `${error} (${why})`, step, retryAt };
}

/** Whether the log rejected the event itself. */
export function isRefusedData(error: unknown): error is EventStoreError {
  return (
    error instanceof EventStoreError &&
    (error.code === 'TOO_LARGE' || error.code === 'INVALID_EVENT')
  );
}

/** Whether the log failed, rather than the event. */
export function isOutage(error: unknown): error is EventStoreError {
  return error instanceof EventStoreError && !isRefusedData(error);
}

/** Whether writing may succeed later. */
export function isTemporary(error: unknown): boolean {
  return (
    error instanceof EventStoreError &&
    (error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN')
  );
}
