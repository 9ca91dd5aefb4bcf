import type { JsonValue } from '../../domain/json.ts';
import type { CompiledCall } from '../../domain/pipeline/compile.ts';
import type { Scope } from '../../domain/pipeline/expression.ts';
import type { Template } from '../../domain/pipeline/template.ts';
import { argumentsHash } from '../../domain/runs/arguments-hash.ts';
import type { Progress } from './pipeline-execution-progress.ts';

/** Created lazily, because constants do not read it. */
const unusedScope = {} as Scope;

/** Renders the arguments of a step's tool. @throws (or rejects with) PipelineError */
export function renderArguments(
  progress: Progress,
  { args }: CompiledCall,
  scope: () => Scope,
): JsonValue | Promise<JsonValue> {
  if (args.constant) return args.render(unusedScope);
  const given = scope();
  return progress.evaluate(args, given, () => args.render(given));
}

const constantHashes = new WeakMap<Template, string>();

/** The hash of rendered arguments. @param masked the same value if there is nothing to mask */
export function hashOf(template: Template, args: JsonValue, masked: JsonValue): string {
  if (!template.constant || masked !== args) return argumentsHash(masked);
  let known = constantHashes.get(template);
  if (known === undefined) {
    known = argumentsHash(args);
    constantHashes.set(template, known);
  }
  return known;
}
