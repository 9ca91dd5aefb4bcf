import { EventStoreError } from '../domain/event-store.ts';
import type { RunEvent } from '../domain/events/catalogue.ts';
import type { PipelineOutcome } from './run-executor.ts';

/** What the metric of executions calls what an event did to a run. */
export const statusOf = (event: RunEvent): string =>
  ({
    RunSucceeded: 'succeeded',
    RunFailed: 'failed',
    RunCanceled: 'canceled',
    RunAttemptFailed: 'retrying',
    RunInterrupted: 'interrupted',
  })[event.type as string] ?? 'other';

/** A failure that no retry can heal and that no step is to blame for. */
export const failedOutright = (error: string): PipelineOutcome => {
  return { kind: 'failed', error, step: null, retryable: false, steps: [], output: {} };
};

/** Whether it is the event itself that the log does not take. */
export function isRefusedData(error: unknown): error is EventStoreError {
  return (
    error instanceof EventStoreError &&
    (error.code === 'TOO_LARGE' || error.code === 'INVALID_EVENT')
  );
}

/** Whether writing may succeed later. */
export function isPassing(error: unknown): boolean {
  return (
    error instanceof EventStoreError &&
    (error.code === 'UNAVAILABLE' || error.code === 'OUTCOME_UNKNOWN')
  );
}
