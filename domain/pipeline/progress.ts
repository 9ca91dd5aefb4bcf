import type { StepEnd } from '../events/catalogue.ts';
import type { JsonObject } from '../json.ts';
import type { CompiledCall, CompiledPipeline, CompiledStep } from './compile.ts';
import { itemName, splitItemName, type RunSummary } from './output.ts';

/**
 * Folds a run's step ends: the finished steps (and items of a `for_each`), which are not run again, with their ends. A
 * failed step is finished if the pipeline continues after it (`on_error: continue`). Otherwise, a retry runs it again.
 * A retry as a new run takes over the same ends.
 */
export function finishedSteps<End extends Pick<StepEnd, 'step' | 'status'>>(
  pipeline: CompiledPipeline,
  ends: readonly End[],
): Map<string, End> {
  const finished = new Map<string, End>();
  if (ends.length === 0) return finished;
  const steps = stepsById(pipeline);
  for (const end of ends) {
    const step = steps.get(splitItemName(end.step).id);
    if (!step) continue;
    if (end.status !== 'failed' || step.onError === 'continue') finished.set(end.step, end);
    else finished.delete(end.step);
  }
  return finished;
}

/** The summary of a run's output. */
function summaryOf(
  pipeline: CompiledPipeline,
  ends: ReadonlyMap<string, StepEnd>,
  failedStep: string | null,
): RunSummary {
  let executed_steps = 0;
  let skipped_steps = 0;
  const count = (step: CompiledCall, groupSkipped: boolean): void => {
    const end = ends.get(step.id);
    if (groupSkipped || end?.status === 'skipped') skipped_steps += 1;
    else if (end !== undefined || ends.has(itemName(step.id, 0))) executed_steps += 1;
    else if (failedStep !== null && splitItemName(failedStep).id === step.id) executed_steps += 1;
  };
  for (const step of pipeline.steps) {
    if (step.kind === 'call') count(step, false);
    else {
      const skipped = ends.get(step.id)?.status === 'skipped';
      for (const child of step.steps) count(child, skipped);
    }
  }
  const summary = { total_steps: pipeline.totalSteps, executed_steps, skipped_steps };
  return failedStep === null ? summary : { ...summary, failed_step: failedStep };
}

/** The `output` of the run's last event; see `outputOf`. */
export function storedOutput(
  pipeline: CompiledPipeline,
  ends: ReadonlyMap<string, StepEnd>,
  failedStep: string | null,
): JsonObject {
  const summary = summaryOf(pipeline, ends, failedStep) as RunSummary & JsonObject;
  const { layout } = pipeline;
  if (Object.keys(layout).length === 0) return { summary };
  return { summary, layout: layout as JsonObject };
}

function stepsById(pipeline: CompiledPipeline): ReadonlyMap<string, CompiledStep> {
  const steps = new Map<string, CompiledStep>();
  for (const step of pipeline.steps) {
    steps.set(step.id, step);
    if (step.kind === 'group') for (const child of step.steps) steps.set(child.id, child);
  }
  return steps;
}
