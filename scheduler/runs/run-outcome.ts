import { fromIso, type Clock, type Instant } from '../../domain/clock.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import { retryTime } from '../../domain/runs/run.ts';
import type { TaskDefinition } from '../../domain/tasks/task-definition.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { PipelineOutcome } from './run-work.ts';

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
 * When the next attempt of a failed run begins, or null where there is none. An attempt after the run's deadline is
 * dropped, and the error says so.
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
