import type { Instant } from '../../domain/clock.ts';
import type { CompiledCall, CompiledStep } from '../../domain/pipeline/compile.ts';
import { evaluateSnapshot, type Expression, type Scope } from '../../domain/pipeline/expression.ts';
import { PipelineError } from '../../domain/pipeline/pipeline-error.ts';
import { isFalsy } from '../../domain/pipeline/jmespath.ts';
import { itemName } from '../../domain/pipeline/output.ts';
import { MAX_FOR_EACH_ITEMS } from '../../domain/pipeline/pipeline.ts';
import { truncateString } from '../../domain/pipeline/json-size.ts';
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
    if (!(error instanceof PipelineError)) throw error;
    const failure = { message: error.message, retryable: false };
    return noteFailure(progress, step, name, startedAt, failure);
  }
  progress.ended({ step: name, status: 'skipped', startedAt });
  return done;
}

/** Calls a step's tool, with the step's retries, and records the outcome. */
function runOnce(
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
  return span === undefined
    ? call()
    : traceStep(span, (ended) => progress.errorOf(ended), step.uses, name, call);
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

/** Runs a step that uses a tool: its condition, its items, its call. @param signal called only when needed */
export function runCall(
  progress: Progress,
  step: CompiledCall,
  signal: () => AbortSignal,
): StepOutcome | Promise<StepOutcome> {
  if (progress.isFinished(step.id)) return done;
  if (!step.conditionPerItem) {
    const verdict = decide(progress, step, step.id, () => progress.scope());
    if (verdict !== 'run') return verdict;
  }
  return step.each === null
    ? runOnce(progress, step, step.id, () => progress.scope(), signal)
    : runItems(progress, step, step.each, signal());
}

/**
 * Runs a step for each item of its array, in order. Each item is a step of its own, `<id>[<index>]`; finished ones are
 * skipped. The whole step then ends with `[]` if there was no item, else with null: the items hold the results.
 */
async function runItems(
  progress: Progress,
  step: CompiledCall,
  each: NonNullable<CompiledCall['each']>,
  signal: AbortSignal,
): Promise<StepOutcome> {
  const startedAt = progress.environment.clock.now();
  let items: readonly unknown[];
  try {
    items = itemsOf(each, progress.scope());
    progress.takeItems(step.id, items.length);
  } catch (error) {
    if (!(error instanceof PipelineError)) throw error;
    const failure = { message: error.message, retryable: false };
    return noteFailure(progress, step, step.id, startedAt, failure);
  }
  for (const [index, item] of items.entries()) {
    const pause = progress.pauseIfDue();
    if (pause) await pause;
    if (signal.aborted) return aborted;
    const outcome = await runItem(progress, step, index, item, signal);
    if (outcome.kind !== 'done') return outcome;
  }
  const result = items.length === 0 ? [] : null;
  progress.ended({ step: step.id, status: 'succeeded', result, startedAt });
  return done;
}

function runItem(
  progress: Progress,
  step: CompiledCall,
  index: number,
  item: unknown,
  signal: AbortSignal,
): StepOutcome | Promise<StepOutcome> {
  const name = itemName(step.id, index);
  if (progress.isFinished(name)) return done;
  const scope = (): Scope => progress.scope(item, index);
  if (step.conditionPerItem) {
    const verdict = decide(progress, step, name, scope);
    if (verdict !== 'run') return verdict;
  }
  return runOnce(progress, step, name, scope, () => signal);
}

function itemsOf(each: NonNullable<CompiledCall['each']>, scope: Scope): readonly unknown[] {
  const items: unknown = 'render' in each ? each.render(scope) : evaluateSnapshot(each, scope);
  if (!Array.isArray(items)) {
    const type = items === null ? 'null' : typeof items;
    const text = 'text' in each ? ` "${truncateString(each.text, 200)}"` : '';
    throw new PipelineError(`for_each${text} must give an array, got ${type}`);
  }
  if (items.length > MAX_FOR_EACH_ITEMS) {
    throw new PipelineError(
      `for_each gives ${items.length} items; the limit is ${MAX_FOR_EACH_ITEMS}`,
    );
  }
  return items as readonly unknown[];
}
