import { RefusalError } from '../errors.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import type { Expression } from './expression.ts';
import type { OutputLayout } from './output.ts';
import { parsePayload } from './parse.ts';
import {
  DEFAULT_TIMEOUT_SECONDS,
  isGroup,
  type CallStep,
  type Pipeline,
  type Step,
} from './pipeline.ts';
import { jsonBytes } from './json-size.ts';
import { secretNamesIn } from './secret-names.ts';
import { placedSecret, type SecretPlace } from './secret-places.ts';
import { compileTemplate, parseWrapped, type Template } from './template.ts';

/** A compiled step that calls a tool. */
export interface CompiledCall {
  readonly kind: 'call';
  readonly id: string;
  readonly uses: string;
  readonly args: Template;
  /** The places of secrets in its arguments. */
  readonly secretPlaces: readonly SecretPlace[];
  readonly saveAs: string | null;
  readonly condition: Expression | boolean | null;
  /** Whether the condition reads the item and is evaluated for each item of the `for_each`. */
  readonly conditionPerItem: boolean;
  readonly each: Expression | Template | null;
  /** How many items of `each` run at the same time. */
  readonly maxParallel: number;
  /** Whether any of its values or conditions is an expression. */
  readonly readsScope: boolean;
  readonly needs: readonly string[];
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly onError: 'fail' | 'continue';
  readonly waitsForCallback: boolean;
  /** The time limit of its callback or its job; null: the default. */
  readonly waitMs: number | null;
  readonly releaseKey: boolean;
  /** The labels that a worker must have. */
  readonly labels: Readonly<Record<string, string>>;
}

/** A compiled group of parallel steps. */
export interface CompiledGroup {
  readonly kind: 'group';
  readonly id: string;
  readonly saveAs: string | null;
  readonly condition: Expression | boolean | null;
  /** Whether its condition is an expression. */
  readonly readsScope: boolean;
  readonly needs: readonly string[];
  readonly timeoutMs: number | null;
  readonly onError: 'fail' | 'continue';
  readonly steps: readonly CompiledCall[];
}

export type CompiledStep = CompiledCall | CompiledGroup;

/** A task's payload, compiled once for all runs of that revision. */
export interface CompiledPipeline {
  readonly steps: readonly CompiledStep[];
  /** Whether `needs` orders the steps, rather than their sequence. */
  readonly isGraph: boolean;
  readonly params: JsonObject;
  /** The fault of the payload, which is the error of all its runs; null if the payload is valid. */
  readonly error: string | null;
  /** How results become the run's output. */
  readonly layout: OutputLayout;
  /** Bytes of `layout` as JSON. */
  readonly layoutBytes: number;
  /** The number of steps that call a tool, including those in groups. */
  readonly totalSteps: number;
  /** Names of the secrets that appear anywhere in the pipeline. */
  readonly secretNames: readonly string[];
}

const compiled = new WeakMap<JsonObject, CompiledPipeline>();

/** Compiles a payload, once per (immutable) object. Never throws; see `error`. */
export function compilePipeline(payload: JsonObject): CompiledPipeline {
  let pipeline = compiled.get(payload);
  if (!pipeline) {
    pipeline = compileUncached(payload);
    compiled.set(payload, pipeline);
  }
  return pipeline;
}

function compileUncached(payload: JsonObject): CompiledPipeline {
  try {
    const { pipeline, params } = parsePayload(payload);
    const layout = layoutOf(pipeline);
    return {
      steps: pipeline.map(compileStep),
      isGraph: pipeline.some(({ needs }) => needs !== undefined),
      params,
      error: null,
      layout,
      layoutBytes: jsonBytes(layout),
      totalSteps: pipeline.reduce(
        (sum, step) => sum + (isGroup(step) ? step.parallel.length : 1),
        0,
      ),
      secretNames: secretNamesIn(pipeline),
    };
  } catch (error) {
    if (!(error instanceof RefusalError)) throw error;
    const empty = {
      steps: [],
      isGraph: false,
      params: {},
      layout: {},
      layoutBytes: 2,
      totalSteps: 0,
      secretNames: [],
    };
    return { ...empty, error: error.message };
  }
}

function compileStep(step: Step): CompiledStep {
  if (!isGroup(step)) return compileCall(step);
  const condition = conditionOf(step);
  return {
    kind: 'group',
    id: step.id,
    saveAs: step.save_as ?? null,
    condition,
    readsScope: isExpression(condition),
    needs: step.needs ?? [],
    timeoutMs: step.timeout_seconds === undefined ? null : step.timeout_seconds * 1000,
    onError: step.on_error ?? 'fail',
    steps: step.parallel.map(compileCall),
  };
}

function compileCall(step: CallStep): CompiledCall {
  const condition = conditionOf(step);
  const { for_each } = step;
  const usesItem =
    isExpression(condition) && (condition.roots.has('item') || condition.roots.has('index'));
  const secretPlaces: SecretPlace[] = [];
  const args = compileTemplate(argumentsOf(step), (expression, path) => {
    const name = placedSecret(expression);
    if (name !== null) secretPlaces.push({ name, path });
  });
  const each = eachOf(for_each);
  return {
    kind: 'call',
    id: step.id,
    uses: step.uses,
    args,
    secretPlaces,
    saveAs: step.save_as ?? null,
    condition,
    conditionPerItem: for_each !== undefined && usesItem,
    each,
    maxParallel: step.max_parallel ?? 1,
    readsScope: !args.constant || isExpression(condition) || (each !== null && !isConstant(each)),
    needs: step.needs ?? [],
    timeoutMs: (step.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS) * 1000,
    maxRetries: step.max_retries ?? 0,
    onError: step.on_error ?? 'fail',
    waitsForCallback: step.wait_for === 'callback',
    waitMs: step.wait_seconds === undefined ? null : step.wait_seconds * 1000,
    releaseKey: step.release_key === true,
    labels: step.on ?? {},
  };
}

/** The step's `with`; `{}` if omitted, but an explicit null stays. */
export function argumentsOf(step: CallStep): JsonValue {
  return step.with === undefined ? {} : (step.with as JsonValue);
}

function conditionOf(step: Step): Expression | boolean | null {
  const { if: condition } = step;
  if (condition === undefined) return null;
  return typeof condition === 'string' ? parseWrapped(condition) : condition;
}

function eachOf(items: CallStep['for_each']): Expression | Template | null {
  if (items === undefined) return null;
  return typeof items === 'string' ? parseWrapped(items) : compileTemplate(items as JsonValue);
}

const isExpression = (condition: Expression | boolean | null): condition is Expression =>
  typeof condition === 'object' && condition !== null;

const isConstant = (value: Expression | Template): boolean => 'constant' in value && value.constant;

/** The names needed to build outputs; see {@link OutputLayout}. */
function layoutOf(pipeline: Pipeline): OutputLayout {
  const names: (readonly [string, string])[] = [];
  const groups: (readonly [string, readonly string[]])[] = [];
  const hidden: string[] = [];
  const nameOf = ({ id, save_as }: Step): string => save_as ?? id;
  for (const step of pipeline) {
    if (!isGroup(step)) {
      if (step.save_as !== undefined) names.push([step.id, step.save_as]);
      continue;
    }
    hidden.push(step.id);
    for (const child of step.parallel) {
      if (child.save_as !== undefined) names.push([child.id, child.save_as]);
    }
    if (step.save_as !== undefined) groups.push([step.save_as, step.parallel.map(nameOf)]);
  }
  return {
    ...(names.length > 0 ? { names } : {}),
    ...(groups.length > 0 ? { groups } : {}),
    ...(hidden.length > 0 ? { hidden } : {}),
  };
}
