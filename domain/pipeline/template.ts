import type { JsonValue } from '../json.ts';
import {
  endOfQuote,
  evaluateSnapshot,
  isQuote,
  parseExpression,
  type Expression,
  type Scope,
} from './expression.ts';
import { PipelineError } from './pipeline-error.ts';
import { evaluateWithSharedLimit } from './jmespath.ts';
import { placedSecret } from './secret-places.ts';
import { setOwn } from './set-own.ts';
import { MAX_VALUE_LENGTH } from './json-size.ts';

/** A compiled JSON value with `${…}` in its strings. */
export interface Template {
  /** Whether it has no `${…}`. Then it always renders to the same frozen value. */
  readonly constant: boolean;
  /** Its expressions, in the order in which they are evaluated. */
  readonly expressions: readonly Expression[];
  /** @throws PipelineError for an invalid expression or a missing secret */
  render(scope: Scope): JsonValue;
}

/** After this many unclosed `${` in a string, the rest is literal. Keeps the time linear. */
const MAX_UNCLOSED = 50;

/** Splits a string into literals and expressions. */
function splitText(text: string): readonly (string | Expression)[] {
  const parts: (string | Expression)[] = [];
  let literal = '';
  let unclosed = 0;
  let at = 0;
  for (;;) {
    const start = unclosed < MAX_UNCLOSED ? text.indexOf('${', at) : -1;
    if (start === -1) break;
    const end = endOfExpression(text, start + 2);
    literal += text.slice(at, start);
    if (end === -1) {
      unclosed += 1;
      literal += '${';
      at = start + 2;
      continue;
    }
    if (literal !== '') parts.push(literal);
    literal = '';
    parts.push(parseExpression(text.slice(start + 2, end).trim()));
    at = end + 1;
  }
  literal += text.slice(at);
  if (literal !== '' || parts.length === 0) parts.push(literal);
  return parts;
}

/** The expression of a string that is a single `${…}`, ignoring surrounding spaces; null for other strings. */
export function soleExpression(text: string): string | null {
  const trimmed = text.trim();
  if (!trimmed.startsWith('${')) return null;
  const end = endOfExpression(trimmed, 2);
  return end === trimmed.length - 1 ? trimmed.slice(2, end).trim() : null;
}

/** Parses an expression that may be wrapped in `${…}`. */
export function parseWrapped(text: string): Expression {
  return parseExpression(soleExpression(text) ?? text);
}

/**
 * Compiles a value. Keys and the values of expressions are not rendered.
 * @param found called with each expression and the path of its string
 */
export function compileTemplate(
  value: JsonValue,
  found: (expression: Expression, path: readonly (string | number)[]) => void = () => {},
): Template {
  const expressions: Expression[] = [];
  const noting: typeof found = (expression, path) => {
    expressions.push(expression);
    found(expression, path);
  };
  const template = compileValue(value, noting, []);
  return {
    constant: template.constant,
    expressions,
    render: template.constant
      ? template.render
      : (scope) => evaluateWithSharedLimit(() => template.render(scope)),
  };
}

/** A part of a template. */
type Part = Pick<Template, 'constant' | 'render'>;

function compileValue(
  value: JsonValue,
  found: (expression: Expression, path: readonly (string | number)[]) => void,
  path: readonly (string | number)[],
): Part {
  if (typeof value === 'string') return compileText(value, (each) => found(each, path));
  if (typeof value !== 'object' || value === null) return constant(value);
  if (Array.isArray(value)) {
    const items = (value as readonly JsonValue[]).map((item, index) =>
      compileValue(item, found, [...path, index]),
    );
    const render = (scope: Scope): JsonValue => items.map((item) => item.render(scope));
    return items.every((item) => item.constant)
      ? constant(Object.freeze(render(emptyScope)))
      : { constant: false, render };
  }
  const members = Object.entries(value).map(
    ([key, member]) => [key, compileValue(member, found, [...path, key])] as const,
  );
  const render = (scope: Scope): JsonValue => {
    const rendered: Record<string, JsonValue> = {};
    for (const [key, member] of members) setOwn(rendered, key, member.render(scope));
    return rendered;
  };
  return members.every(([, member]) => member.constant)
    ? constant(Object.freeze(render(emptyScope)))
    : { constant: false, render };
}

/** Constants ignore their scope. */
const emptyScope = {} as Scope;

function constant(value: JsonValue): Part {
  return { constant: true, render: () => value };
}

function compileText(text: string, found: (expression: Expression) => void): Part {
  if (!text.includes('${')) return constant(text);
  const parts = splitText(text);
  const [first] = parts;
  for (const part of parts) if (typeof part !== 'string') found(part);
  if (parts.length === 1 && first !== undefined) {
    if (typeof first === 'string') return constant(first);
    return {
      constant: false,
      render: (scope) => toJson(placedIn(first, scope) ?? evaluateSnapshot(first, scope)),
    };
  }
  const render = (scope: Scope): string => {
    let rendered = '';
    for (const part of parts) {
      rendered +=
        typeof part === 'string'
          ? part
          : toTemplateString(placedIn(part, scope) ?? part.evaluate(scope));
      if (rendered.length > MAX_VALUE_LENGTH)
        throw new PipelineError('the rendered string is too long');
    }
    return rendered;
  };
  return { constant: false, render };
}

/** The value of a secret's placeholder, which is not evaluated as an expression; null for any other expression. */
function placedIn(part: Expression, scope: Scope): string | null {
  const secret = placedSecret(part);
  return secret === null ? null : scope.secrets.place(secret);
}

/** Expressions give JSON values, or undefined if a library function finds nothing. */
function toJson(value: unknown): JsonValue {
  return (value ?? null) as JsonValue;
}

/** A value within a string: null is `null`, objects and arrays are compact JSON. */
export function toTemplateString(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

/** The position of an expression's closing brace, ignoring quotes and nested braces; -1 if none. */
function endOfExpression(text: string, from: number): number {
  let depth = 0;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (isQuote(character)) at = endOfQuote(text, at) - 1;
    else if (character === '{') depth += 1;
    else if (character === '}') {
      if (depth === 0) return at;
      depth -= 1;
    }
  }
  return -1;
}
