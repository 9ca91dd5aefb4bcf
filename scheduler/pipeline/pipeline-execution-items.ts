import type { CompiledCall } from '../../domain/pipeline/compile.ts';
import { evaluateToKeep, type Scope } from '../../domain/pipeline/expression.ts';
import { PipelineFault } from '../../domain/pipeline/fault.ts';
import { itemName } from '../../domain/pipeline/output.ts';
import { MOST_ITEMS } from '../../domain/pipeline/pipeline.ts';
import { start } from '../../domain/pipeline/size.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import {
  aborted,
  decide,
  done,
  noteFailure,
  runOnce,
  type StepOutcome,
} from './pipeline-execution-step.ts';

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
    if (!(error instanceof PipelineFault)) throw error;
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
  const items: unknown = 'render' in each ? each.render(scope) : evaluateToKeep(each, scope);
  if (!Array.isArray(items)) {
    const type = items === null ? 'null' : typeof items;
    const text = 'text' in each ? ` "${start(each.text, 200)}"` : '';
    throw new PipelineFault(`for_each${text} must give an array, got ${type}`);
  }
  if (items.length > MOST_ITEMS) {
    throw new PipelineFault(`for_each gives ${items.length} items; the limit is ${MOST_ITEMS}`);
  }
  return items as readonly unknown[];
}
