import { setMaxListeners } from 'node:events';
import type { CompiledCall, CompiledGroup } from '../../domain/pipeline/compile.ts';
import type { Failure } from './pipeline-execution-call.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import { runCall } from './pipeline-execution-items.ts';
import { aborted, decide, done, noteFailure, type StepOutcome } from './pipeline-execution-step.ts';

type Failed = Extract<StepOutcome, { kind: 'failed' }>;

/**
 * Runs steps side by side and waits for all of them. The first that fails (and doesn't say `on_error:
 * continue`) stops the others. What ended well is recorded at once, and not run again by a retry. The group
 * itself is noted when it is over.
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
  // Its own failures are told again, masked, as the group's.
  const told = failure.step === group.id ? failure.failure.message : progress.errorOf(failure.step);
  const outcome = noteFailure(progress, group, group.id, startedAt, {
    ...failure.failure,
    message: told,
  });
  progress.showGroup(group);
  return outcome;
}

/** @returns the first failure; null when all went well or the run is to stop */
async function runAll(
  progress: Progress,
  group: CompiledGroup,
  signal: AbortSignal,
): Promise<Failed | null> {
  const { clock } = progress.environment;
  const controller = new AbortController();
  // Each step that runs listens: that is no leak.
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
    // What can't be recorded ends the execution, once all have stopped.
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
    // Steps that answer at once would else keep the event loop for as long as all of them take.
    const breath = progress.breathe();
    if (breath) await breath.catch(broke);
    running.push(run(step));
  }
  await Promise.all(running);
  cancelTimeout();
  signal.removeEventListener('abort', stop);
  if (broken !== null) throw (broken as { readonly error: unknown }).error;
  return failed;
}
