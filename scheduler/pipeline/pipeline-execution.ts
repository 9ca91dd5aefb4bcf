import type { CompiledStep } from '../../domain/pipeline/compile.ts';
import type { Environment, Execution, ExecutionResult } from './execution.ts';
import { runGraph } from './pipeline-execution-graph.ts';
import { runGroup } from './pipeline-execution-group.ts';
import { Progress } from './pipeline-execution-progress.ts';
import { runCall } from './pipeline-execution-step.ts';
import type { StepOutcome } from './step-outcome.ts';

/**
 * Executes a pipeline: a fold over the ends of its steps, so any worker can continue where another stopped. Finished
 * steps and items are skipped. Throws nothing, and rejects only when `record` does.
 *
 * @returns the outcome, at once if all steps are synchronous and nothing had to be recorded
 */
export function executePipeline(
  execution: Execution,
  environment: Environment,
): ExecutionResult | Promise<ExecutionResult> {
  const { error, steps, isGraph } = execution.pipeline;
  const progress = new Progress(execution, environment);
  if (error !== null) {
    const output = progress.output(null);
    const rest = { before: [], steps: [] };
    return { kind: 'failed', error, step: null, retryable: false, ...rest, output };
  }
  if (isGraph) return continueGraph(progress);
  for (const [index, step] of steps.entries()) {
    if (environment.stop.aborted) return stopped(progress);
    const pause = progress.pauseIfDue();
    if (pause)
      return continueAsync(
        progress,
        index,
        pause.then(() => null),
      );
    const outcome = runStep(progress, step);
    if (outcome instanceof Promise) return continueAsync(progress, index, outcome);
    const result = resultAfter(progress, outcome);
    if (result !== null) return result;
  }
  return succeeded(progress);
}

async function continueGraph(progress: Progress): Promise<ExecutionResult> {
  const { execution, environment } = progress;
  const outcome = await runGraph(progress, execution.pipeline.steps, environment.stop.signal);
  return resultAfter(progress, outcome) ?? succeeded(progress);
}

/**
 * Continues from a step, and awaits asynchronous work.
 *
 * @param first resolves to that step's outcome, or to null if it has not started
 */
async function continueAsync(
  progress: Progress,
  from: number,
  first: Promise<StepOutcome | null>,
): Promise<ExecutionResult> {
  let outcome = await first;
  for (const step of progress.execution.pipeline.steps.slice(from)) {
    if (outcome === null) {
      if (!progress.environment.stop.aborted) await progress.pauseIfDue();
      if (progress.environment.stop.aborted) return stopped(progress);
      outcome = await runStep(progress, step);
    }
    const result = resultAfter(progress, outcome);
    if (result !== null) return result;
    outcome = null;
  }
  return succeeded(progress);
}

function runStep(progress: Progress, step: CompiledStep): StepOutcome | Promise<StepOutcome> {
  const { stop } = progress.environment;
  return step.kind === 'group'
    ? runGroup(progress, step, stop.signal)
    : runCall(progress, step, () => stop.signal);
}

/** The result of the execution, if this step ends it. */
function resultAfter(
  progress: Progress,
  outcome: StepOutcome,
): ExecutionResult | Promise<ExecutionResult> | null {
  switch (outcome.kind) {
    case 'done':
      return null;
    case 'aborted':
      return stopped(progress);
    case 'suspended':
      return progress.withRest((rest) => ({ kind: 'suspended', ...rest }));
    case 'failed':
      return failed(progress, outcome);
  }
}

function succeeded(progress: Progress): ExecutionResult | Promise<ExecutionResult> {
  return progress.withRest(({ before, steps }) => {
    return { kind: 'succeeded', before, steps, output: progress.output(null) };
  });
}

function stopped(progress: Progress): ExecutionResult | Promise<ExecutionResult> {
  return progress.withRest(({ before, steps }) => {
    return { kind: 'aborted', before, steps, output: progress.output(null) };
  });
}

function failed(
  progress: Progress,
  { step, failure }: Extract<StepOutcome, { kind: 'failed' }>,
): ExecutionResult | Promise<ExecutionResult> {
  const { retryable, retryAfterMs } = failure;
  const error = progress.errorOf(step);
  const why = { error, step, retryable, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return progress.withRest(({ before, steps }) => {
    return { kind: 'failed', ...why, before, steps, output: progress.output(step) };
  });
}
