import { toIso, type Clock, type Instant } from '../../domain/clock.ts';
import type { RunEvent } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import { outputNamed } from '../../domain/runs/run-output.ts';
import { canceled, deadlineOf, overTime, timeOut, type KnownRun } from '../../domain/runs/run.ts';
import type { LiveTask } from '../../domain/tasks/task.ts';
import { afterFailure } from './run-outcome.ts';
import type { AbortCause, PipelineOutcome } from './run-work.ts';

/** An attempt that is over. */
export interface EndedAttempt {
  readonly taskId: string;
  readonly attempt: number;
  readonly worker: string;
  /** The first start of the run. */
  readonly startedAt: string;
  readonly clock: Pick<Clock, 'now'>;
  readonly random: () => number;
}

/** The end of an admitted run that must not start, as it is canceled or has timed out; else empty. */
export function endsUnstarted(
  run: KnownRun,
  { definition }: LiveTask,
  now: Instant,
): readonly RunEvent[] {
  const payload = definition.payload as JsonObject;
  if (run.cancel_requested) return [canceled(run, payload)];
  const { timeout_seconds: limit } = definition;
  const deadline = deadlineOf(run, limit);
  return limit === null || deadline === null || now < deadline ? [] : timeOut(run, limit, payload);
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
  if (outcome.kind === 'succeeded') {
    const { output } = outcome;
    const steps = outcome.steps.slice();
    // Not spread, which takes several times as long, for each run.
    const data = { task_id: taskId, started_at: startedAt, attempt, steps, output };
    return [{ type: 'RunSucceeded', data }];
  }
  const recorded = outcome.steps.map((step) => ({
    type: 'RunStepCompleted' as const,
    data: step,
  }));
  if (cause === 'fenced') return [];
  if (cause === 'drained' && outcome.kind === 'aborted') {
    const data = { worker: of.worker, cause: 'drained' as const };
    return [...recorded, { type: 'RunInterrupted', data }];
  }
  const output = outputNamed(outcome.output, task.definition.payload as JsonObject);
  if (cause === 'canceled')
    return [...recorded, { type: 'RunCanceled', data: { attempt, output } }];
  const { error, step, retryAt } = failureOf(task, outcome, cause, of);
  if (retryAt !== null) {
    const retry_at = toIso(retryAt);
    return [...recorded, { type: 'RunAttemptFailed', data: { attempt, error, step, retry_at } }];
  }
  const ended = { task_id: taskId, started_at: startedAt, attempt };
  const { steps } = outcome;
  return [{ type: 'RunFailed', data: { ...ended, error, step, steps: [...steps], output } }];
}

function failureOf(
  { definition }: LiveTask,
  outcome: Exclude<PipelineOutcome, { kind: 'succeeded' }>,
  cause: AbortCause | null,
  { attempt, startedAt, clock, random }: EndedAttempt,
): { readonly error: string; readonly step: string | null; readonly retryAt: Instant | null } {
  if (cause === 'timeout') {
    return { error: overTime(definition.timeout_seconds ?? 0), step: null, retryAt: null };
  }
  if (outcome.kind === 'aborted') {
    return { error: 'the run was stopped', step: null, retryAt: null };
  }
  return afterFailure(outcome, definition, { attempt, startedAt, now: clock.now(), random });
}
