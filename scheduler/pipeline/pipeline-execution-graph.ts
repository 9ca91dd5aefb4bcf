import type { CompiledStep } from '../../domain/pipeline/compile.ts';
import { runConcurrently, type Unit } from './pipeline-execution-concurrent.ts';
import { ownsStep, runGroup } from './pipeline-execution-group.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import { runCall } from './pipeline-execution-step.ts';
import type { StepOutcome } from './step-outcome.ts';

/** Runs the steps of a pipeline with `needs`, each as soon as the steps that it needs are done. */
export function runGraph(
  progress: Progress,
  steps: readonly CompiledStep[],
  signal: AbortSignal,
): Promise<StepOutcome> {
  const units = steps.map((step): Unit => {
    const owned = step.kind === 'group' ? step.steps.map(({ id }) => id) : [step.id];
    const owns = owned.map(ownsStep);
    return {
      name: step.id,
      needs: step.needs,
      owns: (name) => owns.some((owner) => owner(name)),
      run: (stop) =>
        step.kind === 'group'
          ? runGroup(progress, step, stop)
          : runCall(progress, step, () => stop),
    };
  });
  return runConcurrently(progress, units, { signal });
}
