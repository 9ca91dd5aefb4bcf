import { TreeInterpreter } from '@jmespath-community/jmespath';
import { PipelineFault } from './fault.ts';
import { Secrets } from './secrets.ts';

/**
 * JMESPath as the library evaluates it, made fit for expressions that anyone may write:
 *
 * - a field is one of the object's own; `constructor` and the like are null where nobody set them;
 * - evaluation is bounded: no expression holds the event loop or fills the memory;
 * - `secrets` gives out its members by name only.
 *
 * The library's interpreter asks itself for every node (`this.visit`), which is where this steps in.
 */
type Interpreter = typeof TreeInterpreter;
type Node = Parameters<Interpreter['search']>[0];
type Value = Parameters<Interpreter['search']>[1];

export type { Node as ExpressionNode };

/** Nodes that one evaluation may visit: some 50 ms. */
const MOST_VISITS = 500_000;

/** Nodes that cost more than a visit, or less: a let expression makes an interpreter of its own. */
const nodeCosts: ReadonlyMap<string, number> = new Map([
  ['LetExpression', 100],
  ['Literal', 0],
]);

/** Longest text, in characters, and longest array that a function may give. */
const MOST_TEXT = 4_000_000;
const MOST_ITEMS = 500_000;

/** Most replacements that `replace` may be asked to count; the library makes an array of as many. */
const MOST_COUNTED = 10_000;

/** What a function costs for each item, member or two characters that it is given, in visits. */
const COST = 0.25;

/** The same of those that look at each of them longer, or not at all. */
const costs: ReadonlyMap<string, number> = new Map([
  ['contains', 1 / 32],
  ...['not_null', 'to_array', 'type'].map((name) => [name, 0] as const),
  ...['map', 'max_by', 'min_by', 'reverse'].map((name) => [name, 1] as const),
  ...['from_items', 'group_by', 'items', 'keys', 'merge'].map((name) => [name, 4] as const),
  ...['to_string', 'values', 'zip'].map((name) => [name, 4] as const),
  ...['sort', 'sort_by'].map((name) => [name, 8] as const),
]);

let visits = 0;
const interpreter = bounded(TreeInterpreter.withScope({}));

/**
 * Evaluates a parsed expression.
 * @throws PipelineFault for a secret that is missing or not named
 * @throws Error for whatever the expression gets wrong
 */
export function evaluateNode(node: Node, scope: unknown): unknown {
  visits = MOST_VISITS;
  const value: unknown = interpreter.search(node, scope as Value);
  if (value instanceof Secrets) throw new PipelineFault('secrets are asked for by name');
  return value ?? null;
}

/** One member of a value, as the expression `name` gives it. */
export function member(value: unknown, name: string): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  if (value instanceof Secrets) return value.get(name);
  return Object.hasOwn(value, name) ? ((value as Record<string, unknown>)[name] ?? null) : null;
}

function bounded(target: Interpreter): Interpreter {
  const visit = target.visit.bind(target);
  const withScope = target.withScope.bind(target);
  target.withScope = (scope) => bounded(withScope(scope));
  target.visit = (node, value) => {
    pay(nodeCosts.get(node.type) ?? 1);
    if (node.type === 'Field') return member(value, node.name) as Value;
    if (node.type === 'Comparator' && (node.name === 'EQ' || node.name === 'NE')) {
      const [left, right] = [target.visit(node.left, value), target.visit(node.right, value)];
      if (isLarge(left) && isLarge(right) && left !== right) {
        pay(Math.min(weightOf(left), weightOf(right)));
      }
      return visit({ ...node, left: literal(left), right: literal(right) }, value);
    }
    if (node.type !== 'Function') return visit(node, value);
    const args = node.children.map((child) => target.visit(child, value));
    const cost = costs.get(node.name) ?? COST;
    if (cost > 0) for (const arg of args) pay(sizeOf(arg) * cost);
    const own = ownFunctions.get(node.name)?.(args);
    return withinBounds(node.name, own ?? target.runtime.callFunction(node.name, args as Value[]));
  };
  return target;
}

/** @throws Error where the evaluation has had all that it may */
function pay(cost: number): void {
  visits -= cost;
  if (visits < 0) throw new Error('it needs too many steps');
}

/** How much a function has to look at; to list an object's members takes as long again. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length >>> 1;
  if (!isLarge(value)) return 0;
  return Array.isArray(value) ? value.length : 2 * Object.keys(value).length;
}

/** What may hold others, and so takes longer to compare. */
const isLarge = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** All that stands in a value, on every level, as far as there are visits left. */
function weightOf(value: object): number {
  const inside = [value];
  let weight = 0;
  for (let next = inside.pop(); next !== undefined && weight <= visits; next = inside.pop()) {
    const members: readonly unknown[] = Object.values(next);
    weight += members.length;
    for (const each of members) if (isLarge(each)) inside.push(each);
  }
  return weight;
}

const literal = (value: unknown): Node => ({ type: 'Literal', value: value as Value });

function withinBounds<T>(name: string, value: T): T {
  const tooLong =
    (typeof value === 'string' && value.length > MOST_TEXT) ||
    (Array.isArray(value) && value.length > MOST_ITEMS);
  if (tooLong) throw new Error(`${name}() gives too much`);
  // What is long costs the next function as much, so it counts here.
  if (typeof value === 'string' || Array.isArray(value)) visits -= value.length >>> 6;
  return value;
}

/**
 * Checks, and functions in the place of the library's. Undefined leaves it to the library (also the complaint about
 * arguments of the wrong type).
 */
const ownFunctions: ReadonlyMap<string, (args: readonly unknown[]) => string | undefined> = new Map(
  [
    ['pad_left', checkWidth],
    ['pad_right', checkWidth],
    ['replace', checkCount],
    // The library trims by regular expressions that take quadratic time.
    ['trim', (args: readonly unknown[]) => trim(args, true, true)],
    ['trim_left', (args: readonly unknown[]) => trim(args, true, false)],
    ['trim_right', (args: readonly unknown[]) => trim(args, false, true)],
  ],
);

function checkWidth([, width]: readonly unknown[]): undefined {
  if (typeof width === 'number' && width > MOST_TEXT) throw new Error('the width is too large');
}

function checkCount([, , , count]: readonly unknown[]): undefined {
  if (typeof count === 'number' && count > MOST_COUNTED) {
    throw new Error(`replace() counts up to ${MOST_COUNTED}`);
  }
}

function trim(args: readonly unknown[], left: boolean, right: boolean): string | undefined {
  const [text, characters = ''] = args;
  if (args.length > 2 || typeof text !== 'string' || typeof characters !== 'string')
    return undefined;
  const all = [...text];
  const set = new Set(characters);
  const goes = (character: string | undefined): boolean =>
    character !== undefined && (set.size > 0 ? set.has(character) : /[\s\x85]/.test(character));
  let start = 0;
  let end = all.length;
  while (left && start < end && goes(all[start])) start += 1;
  while (right && end > start && goes(all[end - 1])) end -= 1;
  return all.slice(start, end).join('');
}
