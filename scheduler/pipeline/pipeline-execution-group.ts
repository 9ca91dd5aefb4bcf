import { setMaxListeners } from 'node:events';
import type { CompiledCall, CompiledGroup } from '../../domain/pipeline/compile.ts';
import type { Failure } from './pipeline-execution-call.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import {
  aborted,
  decide,
  done,
  noteFailure,
  runCall,
  type StepOutcome,
} from './pipeline-execution-step.ts';

type Failed = Extract<StepOutcome, { kind: 'failed' }>;

/**
 * Runs steps in parallel and waits for all of them. The first failure (without `on_error: continue`) stops the others.
 * Successful steps are recorded at once, and a retry does not repeat them.
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
  const verdict = decide(progress, group, group.id, () => progress.scope());
  if (verdict !== 'run') return verdict;
  const startedAt = progress.environment.clock.now();
  const failure = await runAll(progress, group, signal);
  if (failure === null && signal.aborted) return aborted;
  if (failure === null) {
    progress.ended({ step: group.id, status: 'succeeded', startedAt });
    progress.showGroup(group);
    return done;
  }
  if (group.onError !== 'continue' && failure.step !== group.id) return failure;
  // A step's error is taken masked, as it was recorded.
  const message =
    failure.step === group.id ? failure.failure.message : progress.errorOf(failure.step);
  const masked = { ...failure.failure, message };
  const outcome = noteFailure(progress, group, group.id, startedAt, masked);
  progress.showGroup(group);
  return outcome;
}

/** @returns the first failure; null when all succeeded or the run must stop */
async function runAll(
  progress: Progress,
  group: CompiledGroup,
  signal: AbortSignal,
): Promise<Failed | null> {
  const { clock } = progress.environment;
  const controller = new AbortController();
  // Each running step listens; this is not a leak.
  setMaxListeners(0, controller.signal);
  let failed: Failed | null = null;
  let broken: { readonly error: unknown } | null = null;
  const fail = (step: string, failure: Failure): void => {
    failed ??= { kind: 'failed', step, failure };
    controller.abort(new Error(`${step} failed`));
  };
  const stop = (): void => controller.abort(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  const cancelTimeout =
    group.timeoutMs === null
      ? () => {}
      : clock.after(group.timeoutMs, () => {
          const seconds = (group.timeoutMs ?? 0) / 1000;
          const message = `timed out after ${seconds} s (timeout_seconds)`;
          fail(group.id, { message, retryable: true });
        });
  let left = group.steps.length;
  const broke = (error: unknown): void => {
    // A failed append ends the execution once all steps have stopped.
    broken ??= { error };
    controller.abort(error);
  };
  const run = async (step: CompiledCall): Promise<void> => {
    try {
      if (controller.signal.aborted) return;
      const outcome = await runCall(progress, step, () => controller.signal);
      if (outcome.kind === 'failed') fail(outcome.step, outcome.failure);
      left -= 1;
      if (left > 0) await progress.flush();
    } catch (error) {
      broke(error);
    }
  };
  const running: Promise<void>[] = [];
  for (const step of group.steps) {
    // Without a pause, synchronous steps would block the event loop together.
    const pause = progress.pauseIfDue();
    if (pause) await pause.catch(broke);
    running.push(run(step));
  }
  await Promise.all(running);
  cancelTimeout();
  signal.removeEventListener('abort', stop);
  if (broken !== null) throw (broken as { readonly error: unknown }).error;
  return failed;
}
