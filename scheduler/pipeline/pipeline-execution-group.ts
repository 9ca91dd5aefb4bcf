import type { Instant } from '../../domain/clock.ts';
import type { CompiledGroup } from '../../domain/pipeline/compile.ts';
import type { Scope } from '../../domain/pipeline/expression.ts';
import { runConcurrently, type Unit } from './pipeline-execution-concurrent.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import { decide, noteFailure, runCall } from './pipeline-execution-step.ts';
import { done, type StepOutcome } from './step-outcome.ts';

/**
 * Runs steps in parallel and waits for all of them. The first failure (without `on_error: continue`) stops the others.
 * Successful steps are recorded at once, and a retry does not repeat them. The timeout does not run while all remaining
 * steps are suspended.
 */
export async function runGroup(
  progress: Progress,
  group: CompiledGroup,
  signal: AbortSignal,
): Promise<StepOutcome> {
  if (progress.isFinished(group.id)) {
    progress.showGroup(group);
    return done;
  }
  const startedAt = progress.environment.clock.now();
  const run = (): Promise<StepOutcome> => runSteps(progress, group, startedAt, signal);
  if (progress.hasBegun(group.steps.map(({ id }) => id))) return run();
  const scope = (): Scope => progress.scope(startedAt);
  return decide(progress, group, group.id, startedAt, scope, run);
}

async function runSteps(
  progress: Progress,
  group: CompiledGroup,
  startedAt: Instant,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const { readsScope } = group;
  const units = group.steps.map((step): Unit => {
    return {
      name: step.id,
      needs: [],
      owns: ownsStep(step.id),
      run: (stop) => runCall(progress, step, () => stop),
    };
  });
  const outcome = await runConcurrently(progress, units, { signal, ...timeoutOf(group) });
  if (outcome.kind === 'done') {
    progress.ended({ step: group.id, status: 'succeeded', startedAt, readsScope });
    progress.showGroup(group);
  }
  if (outcome.kind !== 'failed') return outcome;
  progress.stopWaits((step) => units.some((unit) => unit.owns(step)));
  if (group.onError !== 'continue' && outcome.step !== group.id) return outcome;
  // A step's error is taken masked, as it was recorded.
  const message =
    outcome.step === group.id ? outcome.failure.message : progress.errorOf(outcome.step);
  const masked = { ...outcome.failure, message };
  const noted = noteFailure(progress, group, group.id, startedAt, masked);
  progress.showGroup(group);
  return noted;
}

/** Whether a step or item belongs to a step. */
export function ownsStep(id: string): (step: string) => boolean {
  return (step) => step === id || step.startsWith(`${id}[`);
}

function timeoutOf({ id, timeoutMs: ms }: CompiledGroup) {
  if (ms === null) return {};
  const message = `timed out after ${ms / 1000} s (timeout_seconds)`;
  return { timeout: { ms, step: id, message } };
}
