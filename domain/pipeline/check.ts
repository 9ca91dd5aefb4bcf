import type { Issue } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { argumentCheck } from './arguments.ts';
import { argumentsOf } from './compile.ts';
import { parseExpression, scopeNames, type Expression } from './expression.ts';
import { readPayload } from './parse.ts';
import { DEFAULT_TIMEOUT_SECONDS, isGroup, type CallStep, type Step } from './pipeline.ts';
import { compileTemplate, insideOf } from './template.ts';

/** What is known of the tools that are registered now. */
export interface KnownTools {
  /** JSON schema of the tool's arguments; undefined: no such tool. */
  schemaOf(name: string): object | undefined;
}

/** What a task's payload is told at create and update. */
export interface PayloadCheck {
  /** Faults: the payload is refused. `field` is a dotted path such as `payload.pipeline.0.uses`. */
  readonly issues: readonly Issue[];
  /** What will go wrong unless something changes; the task is accepted. */
  readonly warnings: readonly string[];
}

/**
 * Checks a payload: the form of each step, and its arguments by the tool's schema where no template stands.
 * A tool that no one has registered is a warning, as an extension may bring it later; so is a broken
 * expression, which fails the run.
 */
export function checkPayload(payload: JsonObject, tools: KnownTools): PayloadCheck {
  const { parsed, issues } = readPayload(payload);
  const found = { issues: [...issues], warnings: [] as string[] };
  for (const key of Object.keys(payload)) {
    if (key === 'pipeline' || key === 'params') continue;
    found.warnings.push(`payload.${key}: is not used; a payload is {params?, pipeline}`);
  }
  // Positions in what was parsed are those of the payload only when no step was left out.
  if (issues.length > 0) return found;
  parsed.pipeline.forEach((step, index) => {
    const field = `payload.pipeline.${index}`;
    checkCondition(step, field, found.warnings);
    if (!isGroup(step)) return checkCall(step, field, tools, found);
    step.parallel.forEach((child, place) => {
      checkCondition(child, `${field}.parallel.${place}`, found.warnings);
      checkCall(child, `${field}.parallel.${place}`, tools, found);
    });
  });
  return found;
}

interface Found {
  readonly issues: Issue[];
  readonly warnings: string[];
}

function checkCall(step: CallStep, field: string, tools: KnownTools, found: Found): void {
  const { for_each } = step;
  if (typeof for_each === 'string') {
    warnOf(parseExpression(insideOf(for_each) ?? for_each), `${field}.for_each`, found.warnings);
  }
  const args = argumentsOf(step);
  const templates: (readonly string[])[] = [];
  compileTemplate(args, (expression, path) => {
    templates.push(path.map(String));
    warnOf(expression, [field, 'with', ...path].join('.'), found.warnings);
  });
  const schema = tools.schemaOf(step.uses);
  if (schema === undefined) {
    found.warnings.push(`${field}.uses: no tool named ${step.uses} is registered`);
    return;
  }
  for (const { path, issue, keyword } of argumentCheck(schema)(args)) {
    if (dependsOnTemplate(path, keyword, templates)) continue;
    found.issues.push({ field: [field, 'with', ...path].join('.'), issue });
  }
  warnOfLongSleep(step, field, found.warnings);
  if (templates.every(([key]) => key !== undefined && key !== 'expression')) {
    warnOfTransform(step, field, found.warnings);
  }
}

/** Keywords whose verdict on an object or array does not depend on what its members will be. */
const aboutForm = new Set([
  'type',
  'required',
  'additionalProperties',
  'minProperties',
  'maxProperties',
  'minItems',
  'maxItems',
  'propertyNames',
]);

function dependsOnTemplate(
  path: readonly string[],
  keyword: string,
  templates: readonly (readonly string[])[],
): boolean {
  const startsWith = (one: readonly string[], other: readonly string[]): boolean =>
    other.every((key, index) => one[index] === key);
  return templates.some(
    (template) =>
      startsWith(path, template) || (startsWith(template, path) && !aboutForm.has(keyword)),
  );
}

function checkCondition(step: Step, field: string, warnings: string[]): void {
  if (typeof step.if !== 'string') return;
  warnOf(parseExpression(insideOf(step.if) ?? step.if), `${field}.if`, warnings);
}

function warnOf(expression: Expression, field: string, warnings: string[]): void {
  if (expression.fault !== null) {
    warnings.push(`${field}: ${expression.fault}`);
    return;
  }
  if (/!\s*[A-Za-z_]\w*\s*\./.test(expression.text)) {
    warnings.push(`${field}: in JMESPath !a.b means (!a).b; write !(a.b)`);
  }
  const root = expression.path?.[0];
  if (root !== undefined && !scopeNames.has(root) && !root.startsWith('now')) {
    warnings.push(`${field}: there is nothing named ${root}; it will be null`);
  }
}

function warnOfLongSleep(step: CallStep, field: string, warnings: string[]): void {
  const limit = step.timeout_seconds ?? DEFAULT_TIMEOUT_SECONDS;
  if (step.uses !== 'sleep' || typeof step.with !== 'object' || step.with === null) return;
  const seconds: unknown = 'seconds' in step.with ? step.with.seconds : null;
  if (typeof seconds === 'number' && seconds >= limit) {
    warnings.push(
      `${field}: sleeps for ${seconds} s, but timeout_seconds lets the step have ${limit} s`,
    );
  }
}

/** The expression is an argument here: no template holds it, and it is broken all the same. */
function warnOfTransform(step: CallStep, field: string, warnings: string[]): void {
  if (step.uses !== 'transform' || typeof step.with !== 'object' || step.with === null) return;
  const text: unknown = 'expression' in step.with ? step.with.expression : null;
  const fault = typeof text === 'string' ? parseExpression(text).fault : null;
  if (fault !== null) warnings.push(`${field}.with.expression: ${fault}`);
}
