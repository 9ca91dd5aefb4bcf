import type { StepEnd } from '../events/catalogue.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { CompiledCall, CompiledPipeline } from '../pipeline/compile.ts';
import { CostlyExpressionError } from '../pipeline/costly-expression-error.ts';
import type { Scope } from '../pipeline/expression.ts';
import { evaluateQuickly } from '../pipeline/jmespath.ts';
import { itemName, resultOf, splitItemName } from '../pipeline/output.ts';
import { PipelineError } from '../pipeline/pipeline-error.ts';
import { PlacedSecrets } from '../pipeline/placed-secrets.ts';
import { finishedSteps } from '../pipeline/progress.ts';
import { MASK } from '../pipeline/secrets.ts';
import { argumentsHash } from './arguments-hash.ts';

/** The arguments with which a step called its tool. */
export interface StepInput {
  /** Values of secrets are masked. */
  readonly value: JsonValue;
  /** Whether it matches the hash that the run recorded. */
  readonly exact: boolean;
}

type End = Pick<StepEnd, 'step' | 'status' | 'result' | 'error' | 'attempt'> &
  Partial<Pick<StepEnd, 'started_at' | 'now' | 'arguments_hash'>>;

/** The parts of a run that its expressions read. */
export interface RenderedRun {
  /** In the order of their ends. */
  readonly steps: readonly End[];
  /** The task's defaults, overridden by the run's params and masked. */
  readonly params: JsonObject;
  /** Masks values of secrets. */
  readonly mask: (value: unknown) => unknown;
  readonly event: JsonObject | null;
  readonly task: JsonObject;
  readonly run: JsonObject;
}

/**
 * Renders the arguments of a step again from the run's events. Takes about a millisecond at most.
 * @param name of a step that calls a tool, or of an item of its `for_each`
 * @param recorded the hash of its arguments, if it has called its tool
 * @param now the value of `now` in its expressions; ISO 8601
 * @returns null if it cannot be rendered: for a group, an unknown step, or expressions that fail or take too long
 */
export function stepInput(
  pipeline: CompiledPipeline,
  run: RenderedRun,
  {
    name,
    recorded,
    now,
  }: { readonly name: string; readonly recorded?: string; readonly now: string },
): StepInput | null {
  const { id, index } = splitItemName(name);
  const step = callsOf(pipeline).find((call) => call.id === id);
  if (step === undefined) return null;
  const secrets = new PlacedSecrets(new Map(pipeline.secretNames.map((each) => [each, MASK])));
  const { params, event, task, run: about, mask } = run;
  const steps = resultsOf(pipeline, finishedSteps(pipeline, run.steps));
  const scope: Scope = {
    now,
    params,
    steps,
    event,
    task,
    run: about,
    item: null,
    index: null,
    callback: null,
    secrets,
  };
  try {
    return evaluateQuickly(() => {
      const args = step.args.render(index === null ? scope : itemScope(step, scope, index));
      const value = mask(args) as JsonValue;
      return { value, exact: recorded !== undefined && argumentsHash(value) === recorded };
    });
  } catch (error) {
    if (error instanceof PipelineError || error instanceof CostlyExpressionError) return null;
    throw error;
  }
}

const callsOf = ({ steps }: CompiledPipeline): readonly CompiledCall[] =>
  steps.flatMap((step) => (step.kind === 'group' ? step.steps : [step]));

function itemScope({ each }: CompiledCall, scope: Scope, index: number): Scope {
  if (each === null) return { ...scope, index };
  const items = 'render' in each ? each.render(scope) : each.evaluate(scope);
  const item: unknown = Array.isArray(items) ? (items[index] ?? null) : null;
  return { ...scope, item, index };
}

/** Results by the steps' ids and `save_as` names, as expressions see them. */
function resultsOf(
  pipeline: CompiledPipeline,
  finished: ReadonlyMap<string, End>,
): Readonly<Record<string, unknown>> {
  const results = Object.create(null) as Record<string, unknown>;
  for (const step of callsOf(pipeline)) {
    const end = finished.get(step.id);
    if (end === undefined || end.status === 'skipped') continue;
    const result = step.each === null ? resultOf(end as StepEnd) : listOf(finished, step.id, end);
    results[step.id] = result;
    if (step.saveAs !== null) results[step.saveAs] = result;
  }
  for (const group of pipeline.steps) {
    const status = finished.get(group.id)?.status;
    if (group.kind !== 'group' || status === undefined || status === 'skipped') continue;
    const parts = Object.create(null) as Record<string, unknown>;
    for (const { id, saveAs } of group.steps) if (id in results) parts[saveAs ?? id] = results[id];
    results[group.id] = parts;
    if (group.saveAs !== null) results[group.saveAs] = parts;
  }
  return results;
}

/** The items' results; without items, the result of the whole step. */
function listOf(finished: ReadonlyMap<string, End>, id: string, whole: End): unknown {
  const list: unknown[] = [];
  for (;;) {
    const end = finished.get(itemName(id, list.length));
    if (end === undefined) return list.length > 0 ? list : resultOf(whole as StepEnd);
    list.push(end.status === 'skipped' ? null : resultOf(end as StepEnd));
  }
}

/** The value of `task` in the expressions of a step. */
export const taskInScope = (
  id: string,
  revision: number,
  { title, tags }: { readonly title: string; readonly tags: readonly string[] },
): JsonObject => ({ id, title, tags: [...tags], revision });
