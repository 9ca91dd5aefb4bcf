import { fromIso, type Clock, type Instant } from '../../domain/clock.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { retryTime } from '../../domain/runs/run.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PipelineOutcome } from './run-work.ts';

/** What the metrics of executions call what an event did to a run. */
const statusOf = (event: RunEvent): string =>
  ({
    RunSucceeded: 'succeeded',
    RunFailed: 'failed',
    RunCanceled: 'canceled',
    RunAttemptFailed: 'retrying',
    RunInterrupted: 'interrupted',
  })[event.type as string] ?? 'other';

/** Counts what an event did to a run. @param startedAt the run's first start */
export function tellEnd(
  { telemetry, clock }: { readonly telemetry: Telemetry; readonly clock: Clock },
  event: RunEvent,
  startedAt: string,
): void {
  const status = statusOf(event);
  telemetry.count('task_executions_total', { status });
  const seconds = (clock.now() - fromIso(startedAt)) / 1000;
  telemetry.observe('task_execution_seconds', Math.max(0, seconds), { status });
}

/** A failure that no retry can heal and that no step is to blame for. */
export const failedOutright = (error: string): PipelineOutcome => {
  return { kind: 'failed', error, step: null, retryable: false, steps: [], output: {} };
};

/**
 * What becomes of a run whose attempt has failed: when the next one may begin, or null where none does. One that would
 * begin only after the run must be over is not waited for, and the error says so.
 *
 * @param at.startedAt the first start of the run
 */
export function afterFailure(
  outcome: Extract<PipelineOutcome, { kind: 'failed' }>,
  definition: TaskDefinition,
  at: {
    readonly attempt: number;
    readonly startedAt: string;
    readonly now: Instant;
    readonly random: () => number;
  },
): { readonly error: string; readonly step: string | null; readonly retryAt: Instant | null } {
  const { error, step, retryable, retryAfterMs } = outcome;
  if (!retryable) return { error, step, retryAt: null };
  const { attempt, now, random } = at;
  const limit = definition.timeout_seconds;
  const deadline = limit === null ? null : fromIso(at.startedAt) + limit * 1000;
  const retryAt = retryTime(attempt, definition, now, random, retryAfterMs, deadline);
  if (retryAt !== null || attempt > definition.max_retries) return { error, step, retryAt };
  const why = `the ${limit} s of the run end before its next attempt`;
  return { error: `${error} (${why})`, step, retryAt };
}

/** Whether it is the event itself that the log does not take. */
export function isRefusedData(error: unknown): error is EventStoreError {
  return (
    error instanceof EventStoreError &&
    (error.code === 'TOO_LARGE' || error.code === 'INVALID_EVENT')
  );
}

/** Whether the log failed, and not what was to be written. */
export function isOutage(error: unknown): error is EventStoreError {
  return error instanceof EventStoreError && !isRefusedData(error);
}

/** Whether writing may succeed later. */
export function isPassing(error: unknown): boolean {
  return (
    error instanceof EventStoreError &&
    (error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN')
  );
}
