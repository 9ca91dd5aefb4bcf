import type { Clock, Instant } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { QueuedRun } from './queued-run.ts';
import { isTemporary } from './run-ending.ts';

/** The message that reports a failure. */
const FAILURE = 'could not execute a run; retrying';

/** The pause before a run that could not be executed is retried: the first, and the maximum. Milliseconds. */
const FIRST_PAUSE = 1000;
const MAX_PAUSE = 60_000;

/** After this long without an error, the pauses start over. Milliseconds. */
const FORGET_AFTER = 5 * MAX_PAUSE;

const failures = new WeakMap<QueuedRun, { readonly times: number; readonly at: Instant }>();

/**
 * Handles an error that kept a run from being executed, such as an unreadable task. The pause doubles each time, so that
 * one such run neither fills the log nor blocks a slot. While the event log is unavailable, every run retries soon.
 *
 * @returns when the run may be tried again
 */
export function backOff(
  run: QueuedRun,
  error: unknown,
  { clock, telemetry }: { readonly clock: Clock; readonly telemetry: Telemetry },
): Instant {
  const now = clock.now();
  const last = failures.get(run);
  const isRepeated = last !== undefined && Math.abs(now - last.at) < FORGET_AFTER;
  const times = isRepeated ? last.times + 1 : 1;
  failures.set(run, { times, at: now });
  telemetry.count('run_faults_total');
  const isOutage = isTemporary(error);
  telemetry.failures.failed(FAILURE, error, { run: run.id });
  return now + (isOutage ? FIRST_PAUSE : Math.min(FIRST_PAUSE * 2 ** (times - 1), MAX_PAUSE));
}

/** Notes that nothing kept a run from being executed. Reports it if something did before. */
export function noteExecuted(
  run: QueuedRun,
  { telemetry }: { readonly telemetry: Telemetry },
): void {
  if (failures.delete(run)) telemetry.failures.worked(FAILURE);
}
