import { compile } from '@jmespath-community/jmespath';
import type { Instant } from '../clock.ts';
import { toIso } from '../clock.ts';
import { checkLiteral } from './exact-arithmetic.ts';
import { PipelineError } from './pipeline-error.ts';
import { CostlyExpressionError } from './costly-expression-error.ts';
import { evaluateNode, member, type ExpressionNode } from './jmespath.ts';
import { PlacedSecrets, SECRET_RULE } from './placed-secrets.ts';
import { readsSecrets } from './reads-secrets.ts';
import { truncateString } from './json-size.ts';
import { wellFormed } from './well-formed.ts';

/** The names available to expressions. Values are JSON, except `secrets`. */
export interface Scope {
  /** ISO 8601. */
  readonly now: string;
  readonly params: unknown;
  /** Results by the steps' ids and `save_as` names. */
  readonly steps: unknown;
  /** The triggering event, or null. */
  readonly event: unknown;
  readonly task: unknown;
  readonly run: unknown;
  /** The item of a `for_each`; null elsewhere. */
  readonly item: unknown;
  readonly index: number | null;
  /** `{url, token}` of a step that waits for its callback; null elsewhere. */
  readonly callback?: unknown;
  /** The secrets, which only placeholders can read. */
  readonly secrets: PlacedSecrets;
}

/** The names of {@link Scope}. */
export const scopeNames: ReadonlySet<string> = new Set([
  'now',
  'params',
  'steps',
  'event',
  'task',
  'run',
  'item',
  'index',
  'callback',
  'secrets',
]);

/** A parsed JMESPath expression. An invalid one fails the run that evaluates it. */
export interface Expression {
  readonly text: string;
  /** The fault of the expression; null if it is valid. */
  readonly error: string | null;
  /** The names of a plain path of fields, as most expressions are; null for others. */
  readonly path: readonly string[] | null;
  /** Names of the scope that it may use. */
  readonly roots: ReadonlySet<string>;
  /** Whether it reads `secrets`, as far as its syntax shows. */
  readonly readsSecrets: boolean;
  /** Whether its value may contain the whole `steps` object. */
  readonly givesSteps: boolean;
  /**
   * Evaluates the expression.
   * @param mask masks secrets that were rendered into the expression; if it changes anything, the
   *   message omits the reason, which could quote parts of a secret
   * @throws PipelineError naming the expression
   */
  evaluate(scope: unknown, mask?: (text: string) => string): unknown;
}

/** The result of an expression that was evaluated in another thread: its value, or the message of its failure. */
export type Evaluated = { readonly value: unknown } | { readonly error: string };

/** The results inside {@link withEvaluated}, by the expression's text. */
let evaluatedElsewhere: ReadonlyMap<string, Evaluated> | null = null;

/** Does synchronous work in which these expressions are not evaluated again. */
export function withEvaluated<T>(values: ReadonlyMap<string, Evaluated>, work: () => T): T {
  evaluatedElsewhere = values;
  try {
    return work();
  } finally {
    evaluatedElsewhere = null;
  }
}

/** A shift such as `+24h`: sign, number and unit. */
const shift = /([+-])\s*(\d+)\s*([smhdw])(?![A-Za-z0-9_])/g;

/** `now` as a name of the scope (not a member), with at least one shift. */
const shiftedNow = /(?<![A-Za-z0-9_.@$"&-])now((?:\s*[+-]\s*\d+\s*[smhdw](?![A-Za-z0-9_]))+)/g;

const unitMs: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** The most characters of an expression, as many as a payload may have. Only a rendered expression can be longer. */
const MAX_EXPRESSION_LENGTH = 256 * 1024;

/** Parses an expression. Never throws. */
export function parseExpression(text: string): Expression {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(text);
  } catch (error) {
    const evaluate = (_scope: unknown, mask?: (text: string) => string): never => {
      throw new PipelineError(describeError(text, 'is invalid', error, mask));
    };
    const message = describeError(text, 'is invalid', error);
    const nothing = {
      path: null,
      roots: new Set<string>(),
      readsSecrets: false,
      givesSteps: false,
    };
    return { text, error: message, ...nothing, evaluate };
  }
  const { node, shifts, path, roots } = parsed;
  const read =
    path === null
      ? (scope: unknown): unknown => evaluateNode(node, scope)
      : (scope: unknown): unknown => walk(path, scope);
  const evaluate = (scope: unknown, mask?: (text: string) => string): unknown => {
    const known = path === null ? evaluatedElsewhere?.get(text) : undefined;
    if (known !== undefined) return valueOf(known, text, mask);
    try {
      return read(shifts.size === 0 ? scope : withShifts(scope as Scope, shifts));
    } catch (error) {
      if (error instanceof PipelineError || error instanceof CostlyExpressionError) throw error;
      throw new PipelineError(describeError(text, 'failed', error, mask));
    }
  };
  const givesSteps = path === null ? reachesSteps(text, roots) : path.join() === 'steps';
  const isReading = roots.has('secrets') && readsSecrets(node);
  return { text, error: null, path, roots, readsSecrets: isReading, givesSteps, evaluate };
}

/**
 * @throws PipelineError for a failure in the other thread; its message leaves out the reason if that could quote a
 *   secret
 */
function valueOf(known: Evaluated, text: string, mask?: (text: string) => string): unknown {
  if ('value' in known) return known.value;
  const isMasked = mask !== undefined && mask(text) !== text;
  throw new PipelineError(isMasked ? describeError(text, 'failed', null, mask) : known.error);
}

/**
 * Evaluates an expression to keep its value: copies the `steps` object, to which later steps are
 * added.
 * @throws PipelineError naming the expression
 */
export function evaluateSnapshot(expression: Expression, scope: Scope): unknown {
  const value = expression.evaluate(scope);
  if (!expression.givesSteps || !contains(value, scope.steps)) return value;
  return expression.evaluate({ ...scope, steps: { ...(scope.steps as object) } });
}

/** Whether a value is or contains an object. */
function contains(value: unknown, wanted: unknown): boolean {
  const pending = [value];
  while (pending.length > 0) {
    const each = pending.pop();
    if (typeof each !== 'object' || each === null) continue;
    if (each === wanted) return true;
    for (const member of Object.values(each)) pending.push(member);
  }
  return false;
}

/** Whether an expression uses the steps by name, current node, root or wildcard. */
function reachesSteps(text: string, roots: ReadonlySet<string>): boolean {
  return roots.has('steps') || /[@$*]/.test(text);
}

/**
 * @throws Error if the expression is invalid, too long or too deeply nested, or has a literal that
 *   JavaScript cannot represent
 */
function parse(text: string): Pick<Expression, 'path' | 'roots'> & {
  readonly node: ExpressionNode;
  readonly shifts: ReadonlyMap<string, string>;
} {
  if (text.length > MAX_EXPRESSION_LENGTH)
    throw new Error(`it has more than ${MAX_EXPRESSION_LENGTH} characters`);
  const { source, shifts } = replaceShifts(text);
  const node: ExpressionNode = compile(source);
  for (const { quoted, part } of byQuotes(source)) if (quoted) checkLiteral(part);
  const path = fieldPath(node);
  return { node, shifts, path, roots: namesIn(node, path) };
}

/**
 * The instant shifted by a chain such as `+24h - 5m`.
 * @throws PipelineError if the result is not a valid date
 */
function shiftNow(now: Instant, chain: string): string {
  let instant = now;
  for (const [, sign, number, unit] of chain.matchAll(shift)) {
    instant += (sign === '-' ? -1 : 1) * Number(number) * (unitMs[unit ?? ''] ?? 0);
  }
  if (Math.abs(instant) > 8.64e15) throw new PipelineError(`now${chain} is not a valid date`);
  return toIso(instant);
}

/** Replaces each `now+24h`, which JMESPath lacks, by a quoted name of the root. */
function replaceShifts(text: string): { source: string; shifts: ReadonlyMap<string, string> } {
  const shifts = new Map<string, string>();
  if (!text.includes('now')) return { source: text, shifts };
  let source = '';
  for (const { quoted, part } of byQuotes(text)) {
    source += quoted
      ? part
      : part.replace(shiftedNow, (whole, chain: string) => {
          shifts.set(whole, chain);
          return `$.${JSON.stringify(whole)}`;
        });
  }
  return { source, shifts };
}

/** Splits an expression into parts outside and inside of quotes (with the quotes). */
function byQuotes(text: string): readonly { quoted: boolean; part: string }[] {
  const parts: { quoted: boolean; part: string }[] = [];
  let from = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (!isQuote(text[at])) continue;
    const end = endOfQuote(text, at);
    parts.push({ quoted: false, part: text.slice(from, at) });
    parts.push({ quoted: true, part: text.slice(at, end) });
    from = end;
    at = end - 1;
  }
  parts.push({ quoted: false, part: text.slice(from) });
  return parts;
}

/** JMESPath's quotes: of raw strings, quoted names and JSON literals. */
export function isQuote(character: string | undefined): boolean {
  return character === "'" || character === '"' || character === '`';
}

/** The position after the quoted part at `start`; the string's end if it is not closed. */
export function endOfQuote(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === text[start]) return at + 1;
  }
  return text.length;
}

function withShifts(scope: Scope, shifts: ReadonlyMap<string, string>): Record<string, unknown> {
  const now = Date.parse(scope.now);
  const more = [...shifts].map(([name, chain]) => [name, shiftNow(now, chain)]);
  return { ...scope, ...(Object.fromEntries(more) as Record<string, string>) };
}

/** The names of an expression that is only a path of fields; null for others. */
function fieldPath(node: ExpressionNode): readonly string[] | null {
  if (node.type === 'Field') return [node.name];
  if (node.type !== 'Subexpression' || node.right.type !== 'Field') return null;
  const left = fieldPath(node.left);
  return left && [...left, node.right.name];
}

function walk(path: readonly string[], scope: unknown): unknown {
  let value = scope;
  for (const name of path) value = member(value, name);
  if (value instanceof PlacedSecrets) throw new Error(SECRET_RULE);
  return value;
}

/** All field names of an expression; only the first of a plain path. */
function namesIn(node: ExpressionNode, path: readonly string[] | null): ReadonlySet<string> {
  if (path) return new Set(path.slice(0, 1));
  const names = new Set<string>();
  const visit = (part: unknown): void => {
    if (Array.isArray(part)) part.forEach(visit);
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return;
    if ('type' in part && part.type === 'Field' && 'name' in part) names.add(String(part.name));
    for (const [key, child] of Object.entries(part)) if (key !== 'type') visit(child);
  };
  visit(node);
  return names;
}

function describeError(
  text: string,
  what: string,
  error: unknown,
  mask: (text: string) => string = (same) => same,
): string {
  const masked = mask(text);
  const reason = masked === text ? `: ${messageOf(error)}` : '';
  return `the expression "${shorten(masked)}" ${what}${reason}`;
}

const shorten = (text: string): string =>
  text.length > 200 ? `${truncateString(text, 200)}…` : text;

/** The parser reports only the first half of a surrogate pair. */
const messageOf = (error: unknown): string =>
  wellFormed(error instanceof Error ? error.message : String(error));
