import type { Clock } from '../../domain/clock.ts';
import type { StepEnd } from '../../domain/events/catalogue.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { CompiledPipeline, CompiledStep } from '../../domain/pipeline/compile.ts';
import type { Span, Telemetry } from '../../observability/telemetry.ts';
import { runGroup } from './pipeline-execution-group.ts';
import { runCall } from './pipeline-execution-items.ts';
import { Progress } from './pipeline-execution-progress.ts';
import type { StepOutcome } from './pipeline-execution-step.ts';
import type { ToolRegistry } from '../tools/registry.ts';

/** One attempt of a run, to be executed from the first step that is not finished. */
export interface Execution {
  /** Of `compilePipeline`, which keeps it for each payload. */
  readonly pipeline: CompiledPipeline;
  readonly runId: string;
  readonly taskId: string;
  /** The task's `created_by`, for whom tools act. */
  readonly actAs: string;
  /** What expressions see under these names. `params` comes with the pipeline. */
  readonly context: {
    readonly task: JsonObject;
    readonly run: JsonObject;
    readonly event: JsonObject | null;
  };
  /** Step ends that the run's stream holds, in its order, those of earlier attempts included. */
  readonly finished: readonly StepEnd[];
  /** From 1. */
  readonly attempt: number;
}

/** What an execution works with. */
export interface Environment {
  readonly tools: Pick<ToolRegistry, 'find'>;
  readonly clock: Clock;
  /** Ends the work: the running step is told to stop. Asked for only when something is to listen to it. */
  readonly signal: AbortSignal;
  /** Whether the work is to end, without asking for the signal. Default: as the signal says. */
  readonly isStopped?: (() => boolean) | undefined;
  /** A secret's value, by the name that stands in `${secrets.NAME}`. */
  readonly secrets: (name: string) => string | undefined;
  /**
   * Makes ends of steps durable, in this order: resolves when they are. Called one at a time, before the next step
   * that could be noticed outside starts. When it rejects, the execution stops and rejects with the same error.
   */
  readonly record: (steps: readonly StepEnd[]) => Promise<void>;
  /** Of the attempt; none where it is not traced. */
  readonly span?: Span | undefined;
  /** Told how long calls of tools took that do not answer at once. */
  readonly telemetry?: Pick<Telemetry, 'observe'>;
  /** For the pauses between tries; default `Math.random`. */
  readonly random?: () => number;
}

/** How an attempt came out. `steps` have ended and are not recorded yet; they fit into one event. */
export type ExecutionResult =
  | {
      readonly kind: 'succeeded';
      readonly steps: readonly StepEnd[];
      /** For the run's last event; `outputOf` makes the run's output of it and the step ends. */
      readonly output: JsonObject;
    }
  | {
      readonly kind: 'failed';
      readonly error: string;
      /** The step that failed; null when the pipeline itself is at fault. */
      readonly step: string | null;
      /** Whether trying again can help. */
      readonly retryable: boolean;
      readonly retryAfterMs?: number;
      /** To be recorded also when the run is tried again: those that succeeded are not run again. */
      readonly steps: readonly StepEnd[];
      readonly output: JsonObject;
    }
  | {
      readonly kind: 'aborted';
      readonly steps: readonly StepEnd[];
      /** For the case that the run ends with this. */
      readonly output: JsonObject;
    };

/**
 * Executes a pipeline, step by step: a fold over the ends of its steps, so that any worker can go on where another
 * stopped. Steps (and items of a `for_each`) that are finished are passed over.
 *
 * Throws nothing, and rejects only when `record` does.
 *
 * @returns how it came out: at once where all of its steps answer at once, and nothing had to be recorded
 */
export function executePipeline(
  execution: Execution,
  environment: Environment,
): ExecutionResult | Promise<ExecutionResult> {
  const { fault, steps } = execution.pipeline;
  const progress = new Progress(execution, environment);
  if (fault !== null) {
    const output = progress.output(null);
    return { kind: 'failed', error: fault, step: null, retryable: false, steps: [], output };
  }
  const isStopped = isStoppedOf(environment);
  for (const [index, step] of steps.entries()) {
    const breath = isStopped() ? undefined : progress.breathe();
    if (breath) return patiently(progress, index, breath);
    if (isStopped()) return stopped(progress);
    const outcome = runStep(progress, step);
    if (outcome instanceof Promise) return patiently(progress, index, null, outcome);
    const end = endBy(progress, outcome);
    if (end !== null) return end;
  }
  return succeeded(progress);
}

/**
 * Goes on from a step, waiting for what takes time.
 *
 * @param breath to be waited for before that step
 * @param running how that step comes out; default: it has not begun
 */
async function patiently(
  progress: Progress,
  from: number,
  breath: Promise<void> | null,
  running?: Promise<StepOutcome>,
): Promise<ExecutionResult> {
  const isStopped = isStoppedOf(progress.environment);
  await breath;
  let begun = running;
  for (const step of progress.execution.pipeline.steps.slice(from)) {
    if (begun === undefined) {
      const pause = isStopped() ? undefined : progress.breathe();
      if (pause) await pause;
      if (isStopped()) return stopped(progress);
    }
    const outcome = await (begun ?? runStep(progress, step));
    begun = undefined;
    const end = endBy(progress, outcome);
    if (end !== null) return end;
  }
  return succeeded(progress);
}

function runStep(progress: Progress, step: CompiledStep): StepOutcome | Promise<StepOutcome> {
  const { environment } = progress;
  return step.kind === 'group'
    ? runGroup(progress, step, environment.signal)
    : runCall(progress, step, () => environment.signal);
}

/** How the execution comes out, where a step ends it; else null. */
function endBy(
  progress: Progress,
  outcome: StepOutcome,
): ExecutionResult | Promise<ExecutionResult> | null {
  if (outcome.kind === 'done') return null;
  return outcome.kind === 'aborted' ? stopped(progress) : failed(progress, outcome);
}

const isStoppedOf = (environment: Environment): (() => boolean) =>
  environment.isStopped ?? (() => environment.signal.aborted);

function succeeded(progress: Progress): ExecutionResult | Promise<ExecutionResult> {
  return progress.withRest((steps) => {
    return { kind: 'succeeded', steps, output: progress.output(null) };
  });
}

function stopped(progress: Progress): ExecutionResult | Promise<ExecutionResult> {
  return progress.withRest((steps) => {
    return { kind: 'aborted', steps, output: progress.output(null) };
  });
}

function failed(
  progress: Progress,
  { step, failure }: Extract<StepOutcome, { kind: 'failed' }>,
): ExecutionResult | Promise<ExecutionResult> {
  const { retryable, retryAfterMs } = failure;
  const error = progress.errorOf(step);
  const why = { error, step, retryable, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
  return progress.withRest((steps) => {
    return { kind: 'failed', ...why, steps, output: progress.output(step) };
  });
}
