import type { Instant } from '../../domain/clock.ts';
import type { CompiledCall, CompiledStep } from '../../domain/pipeline/compile.ts';
import type { Expression, Scope } from '../../domain/pipeline/expression.ts';
import { PipelineFault } from '../../domain/pipeline/fault.ts';
import { isFalsy } from '../../domain/pipeline/jmespath.ts';
import type { Span } from '../../observability/telemetry.ts';
import { callTool, type CallOutcome, type Failure } from './pipeline-execution-call.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import { traceStep } from '../tracing.ts';

/** How a step ended, as far as the pipeline needs to know. */
export type StepOutcome =
  | { readonly kind: 'done' }
  | { readonly kind: 'aborted' }
  | { readonly kind: 'failed'; readonly step: string; readonly failure: Failure };

export const done: StepOutcome = { kind: 'done' };
export const aborted: StepOutcome = { kind: 'aborted' };

/** Evaluates a step's condition, and records the step if it is skipped or its condition fails. */
export function decide(
  progress: Progress,
  step: Pick<CompiledStep, 'condition' | 'onError'>,
  name: string,
  scope: () => Scope,
): StepOutcome | 'run' {
  const startedAt = progress.environment.clock.now();
  try {
    if (isMet(step.condition, scope)) return 'run';
  } catch (error) {
    if (!(error instanceof PipelineFault)) throw error;
    const failure = { message: error.message, retryable: false };
    return noteFailure(progress, step, name, startedAt, failure);
  }
  progress.ended({ step: name, status: 'skipped', startedAt });
  return done;
}

/** Calls a step's tool, with the step's retries, and records the outcome. */
export function runOnce(
  progress: Progress,
  step: CompiledCall,
  name: string,
  scope: () => Scope,
  signal: () => AbortSignal,
): StepOutcome | Promise<StepOutcome> {
  const { clock, span } = progress.environment;
  const startedAt = clock.now();
  const call = (traced?: Span): StepOutcome | Promise<StepOutcome> => {
    const calling = callTool(progress, step, name, scope, signal, traced);
    return calling instanceof Promise
      ? calling.then((outcome) => note(progress, step, name, startedAt, outcome))
      : note(progress, step, name, startedAt, calling);
  };
  return span === undefined ? call() : traceStep(span, progress, step.uses, name, call);
}

function note(
  progress: Progress,
  step: CompiledCall,
  name: string,
  startedAt: Instant,
  outcome: CallOutcome,
): StepOutcome {
  if (outcome.kind === 'aborted') return aborted;
  const { log } = outcome;
  if (outcome.kind === 'failure') return noteFailure(progress, step, name, startedAt, outcome, log);
  try {
    progress.ended({ step: name, status: 'succeeded', result: outcome.result, startedAt, log });
    return done;
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown';
    const message = `its result is not JSON: ${why}`;
    return noteFailure(progress, step, name, startedAt, { message, retryable: false }, log);
  }
}

/** Records a failure. The step's `on_error` decides whether the run continues. */
export function noteFailure(
  progress: Progress,
  step: Pick<CompiledStep, 'onError'>,
  name: string,
  startedAt: Instant,
  failure: Failure,
  log: Extract<CallOutcome, { kind: 'failure' }>['log'] = [],
): StepOutcome {
  progress.ended({ step: name, status: 'failed', error: failure.message, startedAt, log });
  return step.onError === 'continue' ? done : { kind: 'failed', step: name, failure };
}

function isMet(condition: Expression | boolean | null, scope: () => Scope): boolean {
  if (condition === null) return true;
  return typeof condition === 'boolean' ? condition : !isFalsy(condition.evaluate(scope()));
}
