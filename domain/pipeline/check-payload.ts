import type { Issue } from '../errors.ts';
import type { JsonObject } from '../json.ts';
import { argumentCheck } from './arguments.ts';
import { argumentsOf } from './compile.ts';
import { parseExpression, scopeNames, type Expression } from './expression.ts';
import { readPayload } from './parse.ts';
import { isGroup, type CallStep, type Step } from './pipeline.ts';
import { compileTemplate, parseWrapped } from './template.ts';

/** The registered tools. */
export interface KnownTools {
  /** The JSON schema of a tool's arguments; undefined if there is no such tool. */
  schemaOf(name: string): object | undefined;
}

/** The result of checking a task's payload at create and update. */
export interface PayloadCheck {
  /** Issues that reject the payload. `field` is a dotted path such as `payload.pipeline.0.uses`. */
  readonly issues: readonly Issue[];
  /** Likely problems; the task is accepted. */
  readonly warnings: readonly string[];
}

/**
 * Checks a payload: the form of each step, and its arguments without templates by the tool's
 * schema. An unregistered tool is a warning, since an extension may add it later. An invalid
 * expression is one too; it fails the run.
 */
export function checkPayload(payload: JsonObject, tools: KnownTools): PayloadCheck {
  const { parsed, issues } = readPayload(payload);
  const found = { issues: [...issues], warnings: [] as string[] };
  for (const key of Object.keys(payload)) {
    if (key === 'pipeline' || key === 'params') continue;
    found.warnings.push(`payload.${key}: is ignored; a payload has the fields params and pipeline`);
  }
  // Parsed steps have the payload's indexes only if none was left out.
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
    warnAboutExpression(parseWrapped(for_each), `${field}.for_each`, found.warnings);
  }
  const args = argumentsOf(step);
  const templates: (readonly string[])[] = [];
  compileTemplate(args, (expression, path) => {
    templates.push(path.map(String));
    warnAboutExpression(expression, [field, 'with', ...path].join('.'), found.warnings);
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
  if (templates.every(([key]) => key !== undefined && key !== 'expression')) {
    warnAboutTransform(step, field, found.warnings);
  }
}

/** Keywords whose result for an object or array does not depend on the values of its members. */
const structuralKeywords = new Set([
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
      startsWith(path, template) ||
      (startsWith(template, path) && !structuralKeywords.has(keyword)),
  );
}

function checkCondition(step: Step, field: string, warnings: string[]): void {
  if (typeof step.if !== 'string') return;
  warnAboutExpression(parseWrapped(step.if), `${field}.if`, warnings);
}

function warnAboutExpression(expression: Expression, field: string, warnings: string[]): void {
  if (expression.error !== null) {
    warnings.push(`${field}: ${expression.error}`);
    return;
  }
  if (/!\s*[A-Za-z_]\w*\s*\./.test(expression.text)) {
    warnings.push(`${field}: in JMESPath !a.b means (!a).b; write !(a.b)`);
  }
  const root = expression.path?.[0];
  if (root !== undefined && !scopeNames.has(root) && !root.startsWith('now')) {
    warnings.push(`${field}: ${root} is not defined and will be null`);
  }
}

/** This expression is a plain argument, not part of a template. */
function warnAboutTransform(step: CallStep, field: string, warnings: string[]): void {
  if (step.uses !== 'transform' || typeof step.with !== 'object' || step.with === null) return;
  const text: unknown = 'expression' in step.with ? step.with.expression : null;
  const error = typeof text === 'string' ? parseExpression(text).error : null;
  if (error !== null) warnings.push(`${field}.with.expression: ${error}`);
}
