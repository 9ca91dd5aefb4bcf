import type { Issue } from '../errors.ts';
import type { JsonObject, JsonValue } from '../json.ts';
import { argumentCheck } from './arguments.ts';
import { closestName } from './closest-name.ts';
import { argumentsOf } from './compile.ts';
import { parseExpression, scopeNames, type Expression } from './expression.ts';
import { readPayload } from './parse.ts';
import { SECRET_RULE } from './placed-secrets.ts';
import { placedSecret, takesSecret, type SecretPlace } from './secret-places.ts';
import { truncateString } from './json-size.ts';
import { isGroup, type CallStep, type Step } from './pipeline.ts';
import { compileTemplate, parseWrapped } from './template.ts';

/** The registered tools, as far as the check needs them. */
export interface KnownTools {
  /** The JSON schema of a tool's arguments; undefined if there is no such tool. */
  schemaOf(name: string): object | undefined;
  /** Whether a tool belongs to the service or an extension. A worker's tool never gets a secret. */
  isOwn(name: string): boolean;
  /** The names of all tools. */
  names(): readonly string[];
}

/** The result of checking a task's payload at create and update. */
export interface PayloadCheck {
  /** Issues that reject the payload. `field` is a dotted path such as `payload.pipeline.0.uses`. */
  readonly issues: readonly Issue[];
  /** Likely problems; the task is accepted. */
  readonly warnings: readonly string[];
}

/**
 * Checks a payload: the form of each step, its arguments without templates against the tool's schema, and that secrets
 * are only placed where the tool takes them. An unregistered tool is only a warning, because an extension may add it
 * later. An invalid expression, which would fail the run, is also only a warning.
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
    checkCondition(step, field, found);
    if (!isGroup(step)) return checkCall(step, field, tools, found);
    step.parallel.forEach((child, place) => {
      checkCondition(child, `${field}.parallel.${place}`, found);
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
    checkExpression(parseWrapped(for_each), `${field}.for_each`, found);
  } else if (for_each !== undefined) {
    compileTemplate(for_each as JsonValue, (expression, path) =>
      checkExpression(expression, [field, 'for_each', ...path].join('.'), found),
    );
  }
  const args = argumentsOf(step);
  const templates: (readonly string[])[] = [];
  const secrets: SecretPlace[] = [];
  compileTemplate(args, (expression, path) => {
    templates.push(path.map(String));
    const name = placedSecret(expression);
    if (name !== null) secrets.push({ name, path });
    else checkExpression(expression, [field, 'with', ...path].join('.'), found);
  });
  const schema = tools.schemaOf(step.uses);
  if (schema === undefined) {
    const meant = closestName(step.uses, tools.names());
    const remedy = meant === null ? '' : `; did you mean ${meant}?`;
    found.warnings.push(`${field}.uses: no tool named ${step.uses} is registered${remedy}`);
    return;
  }
  for (const place of secrets) {
    const issue = placeIssue(step.uses, schema, tools.isOwn(step.uses), place);
    if (issue !== null)
      found.issues.push({ field: [field, 'with', ...place.path].join('.'), issue });
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

/**
 * Why a secret cannot be used at a place in a tool's arguments; null if it can.
 * @param isOwn whether the tool belongs to the service or an extension
 */
export function placeIssue(
  tool: string,
  schema: object,
  isOwn: boolean,
  { name, path }: SecretPlace,
): string | null {
  if (!isOwn) {
    return `the secret ${name} cannot be given to ${tool}, as a job records its arguments: let the worker read the secret itself`;
  }
  return takesSecret(schema, path)
    ? null
    : `the secret ${name} cannot be used in this argument of ${tool}: ${SECRET_RULE}`;
}

function checkCondition(step: Step, field: string, found: Found): void {
  if (typeof step.if !== 'string') return;
  checkExpression(parseWrapped(step.if), `${field}.if`, found);
}

/** Rejects an expression that reads secrets, and warns of a faulty one. */
function checkExpression(expression: Expression, field: string, found: Found): void {
  const { warnings } = found;
  if (expression.readsSecrets) {
    const text = truncateString(expression.text, 200);
    found.issues.push({ field, issue: `the expression "${text}" reads a secret: ${SECRET_RULE}` });
    return;
  }
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

/** Such an expression is a plain argument, not part of a template. */
function warnAboutTransform(step: CallStep, field: string, warnings: string[]): void {
  if (step.uses !== 'transform' || typeof step.with !== 'object' || step.with === null) return;
  const text: unknown = 'expression' in step.with ? step.with.expression : null;
  const error = typeof text === 'string' ? parseExpression(text).error : null;
  if (error !== null) warnings.push(`${field}.with.expression: ${error}`);
}
