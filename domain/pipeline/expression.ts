import { compile } from '@jmespath-community/jmespath';
import type { Instant } from '../clock.ts';
import { toIso } from '../clock.ts';
import { checkLiteral } from './exact-arithmetic.ts';
import { PipelineFault } from './fault.ts';
import { evaluateNode, member, type ExpressionNode } from './jmespath.ts';
import { Secrets } from './secrets.ts';
import { start } from './size.ts';
import { wellFormed } from './well-formed.ts';

/** What expressions may name. Values are JSON, but for `secrets`. */
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
  /** Within a `for_each`; null elsewhere. */
  readonly item: unknown;
  readonly index: number | null;
  readonly secrets: Secrets;
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
  'secrets',
]);

/** A JMESPath expression, parsed once. Broken ones are kept too: they fail the run that evaluates them. */
export interface Expression {
  readonly text: string;
  /** What is wrong with it; null when it can be parsed. */
  readonly fault: string | null;
  /** The names of a path of fields, which most expressions are; null for all others. */
  readonly path: readonly string[] | null;
  /** Names of the scope it certainly or possibly uses. */
  readonly roots: ReadonlySet<string>;
  /** Whether it may give all the steps' results, by themselves or within something, and not only some of them. */
  readonly givesSteps: boolean;
  /**
   * @param mask of an expression that values of secrets have been written into. What is wrong with such a one is not
   *   said: it would be told by parts of it, in which no secret is found any more
   * @throws PipelineFault that names the expression
   */
  evaluate(scope: unknown, mask?: (text: string) => string): unknown;
}

/** One step of `now+24h`: sign, number and unit. */
const shift = /([+-])\s*(\d+)\s*([smhdw])(?![A-Za-z0-9_])/g;

/** `now` (as a whole name of the scope, not a member of something) with one shift at least. */
const shiftedNow = /(?<![A-Za-z0-9_.@$"&-])now((?:\s*[+-]\s*\d+\s*[smhdw](?![A-Za-z0-9_]))+)/g;

const unitMs: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** Longest text of an expression, in characters: that of a payload. Only one that is rendered can be longer. */
const LONGEST = 256 * 1024;

/** Parses an expression; never throws. */
export function parseExpression(text: string): Expression {
  let parsed: ReturnType<typeof parse>;
  try {
    parsed = parse(text);
  } catch (error) {
    const evaluate = (_scope: unknown, mask?: (text: string) => string): never => {
      throw new PipelineFault(faultOf(text, 'is broken', error, mask));
    };
    const fault = faultOf(text, 'is broken', error);
    return { text, fault, path: null, roots: new Set(), givesSteps: false, evaluate };
  }
  const { node, shifts, path, roots } = parsed;
  const look =
    path === null
      ? (scope: unknown): unknown => evaluateNode(node, scope)
      : (scope: unknown): unknown => walk(path, scope);
  const evaluate = (scope: unknown, mask?: (text: string) => string): unknown => {
    try {
      return look(shifts.size === 0 ? scope : withShifts(scope as Scope, shifts));
    } catch (error) {
      if (error instanceof PipelineFault) throw error;
      throw new PipelineFault(faultOf(text, 'failed', error, mask));
    }
  };
  const givesSteps = path === null ? reachesSteps(text, roots) : path.join() === 'steps';
  return { text, fault: null, path, roots, givesSteps, evaluate };
}

/**
 * What an expression gives, to be kept: all the steps' results, which grow with each step, are those of now.
 * @throws PipelineFault that names the expression
 */
export function evaluateToKeep(expression: Expression, scope: Scope): unknown {
  const value = expression.evaluate(scope);
  if (!expression.givesSteps || !holds(value, scope.steps)) return value;
  return expression.evaluate({ ...scope, steps: { ...(scope.steps as object) } });
}

/** Whether a value is an object, or has it within itself. */
function holds(value: unknown, wanted: unknown): boolean {
  const open = [value];
  while (open.length > 0) {
    const each = open.pop();
    if (typeof each !== 'object' || each === null) continue;
    if (each === wanted) return true;
    for (const member of Object.values(each)) open.push(member);
  }
  return false;
}

/** Whether an expression that is no path names the steps, or has a sign for what it is evaluated on, or for all in it. */
function reachesSteps(text: string, roots: ReadonlySet<string>): boolean {
  return roots.has('steps') || /[@$*]/.test(text);
}

/**
 * @throws Error for what is no expression, is too long, has a literal that JavaScript cannot represent, or has more parts
 *   within each other than can be gone through
 */
function parse(text: string): Pick<Expression, 'path' | 'roots'> & {
  readonly node: ExpressionNode;
  readonly shifts: ReadonlyMap<string, string>;
} {
  if (text.length > LONGEST) throw new Error(`it has more than ${LONGEST} characters`);
  const { source, shifts } = replaceShifts(text);
  const node: ExpressionNode = compile(source);
  for (const { quoted, part } of byQuotes(source)) if (quoted) checkLiteral(part);
  const path = fieldPath(node);
  return { node, shifts, path, roots: namesIn(node, path) };
}

/** An instant, moved by a chain such as `+24h - 5m`. @throws PipelineFault when that is no date */
function shiftNow(now: Instant, chain: string): string {
  let instant = now;
  for (const [, sign, number, unit] of chain.matchAll(shift)) {
    instant += (sign === '-' ? -1 : 1) * Number(number) * (unitMs[unit ?? ''] ?? 0);
  }
  if (Math.abs(instant) > 8.64e15) throw new PipelineFault(`now${chain} is beyond all dates`);
  return toIso(instant);
}

/** Puts a quoted name of the root in place of each `now+24h`, which JMESPath itself doesn't know. */
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

/** A text in turns of what stands outside and inside of quotes (with their marks). */
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

/** The quotes of JMESPath: raw strings, quoted names, JSON literals. */
export function isQuote(character: string | undefined): boolean {
  return character === "'" || character === '"' || character === '`';
}

/** Where the quote that begins at a place has ended; the text's end when it never does. */
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

/** The names of an expression that is a path of fields and no more, which is most of them. */
function fieldPath(node: ExpressionNode): readonly string[] | null {
  if (node.type === 'Field') return [node.name];
  if (node.type !== 'Subexpression' || node.right.type !== 'Field') return null;
  const left = fieldPath(node.left);
  return left && [...left, node.right.name];
}

function walk(path: readonly string[], scope: unknown): unknown {
  let value = scope;
  for (const name of path) value = member(value, name);
  if (value instanceof Secrets) throw new PipelineFault('secrets are asked for by name');
  return value;
}

/** All field names of an expression; of a plain path only the first, as the others are members of it. */
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

function faultOf(
  text: string,
  what: string,
  error: unknown,
  mask: (text: string) => string = (same) => same,
): string {
  const shown = mask(text);
  const why = shown === text ? `: ${messageOf(error)}` : '';
  return `the expression "${shorten(shown)}" ${what}${why}`;
}

const shorten = (text: string): string => (text.length > 200 ? `${start(text, 200)}…` : text);

/** The parser names a character that it does not know by its first half, where it has two. */
const messageOf = (error: unknown): string =>
  wellFormed(error instanceof Error ? error.message : String(error));
