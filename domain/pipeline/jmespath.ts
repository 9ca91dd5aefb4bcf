import { TreeInterpreter } from '@jmespath-community/jmespath';
import { CostlyExpressionError } from './costly-expression-error.ts';
import { checkSum, requireExact } from './exact-arithmetic.ts';
import {
  areSortKeys,
  groupByKey,
  maxByKey,
  minByKey,
  sortByKey,
  type Keyed,
  type Charge,
} from './ordering.ts';
import { PlacedSecrets, SECRET_RULE } from './placed-secrets.ts';
import { MAX_VALUE_LENGTH, approximateLength } from './json-size.ts';
import {
  MAX_ARRAY_LENGTH,
  MAX_STRING_LENGTH,
  functionOverrides,
  type FunctionOverride,
} from './string-functions.ts';
import { indexOfPart } from './string-search.ts';

/**
 * JMESPath on top of the library, made safe for expressions from any user:
 *
 * - A field is an object's own property; `constructor` and the like are null unless set.
 * - Evaluation is bounded in time and memory.
 * - Ordering follows the JMESPath specification and computes each item's key once. The library sorts numbers as strings
 *   and finds no largest item by a string.
 * - `secrets` yields nothing; only placeholders can read it.
 *
 * The library's interpreter calls `this.visit` for every node, which this module overrides.
 */
type Interpreter = typeof TreeInterpreter;
type Node = Parameters<Interpreter['search']>[0];
type Value = Parameters<Interpreter['search']>[1];
type Visit = (node: Node, value: unknown) => unknown;
type FunctionNode = Extract<Node, { readonly type: 'Function' }>;

export type { Node as ExpressionNode };

/** The most nodes that one evaluation may visit, about 50 ms. */
const MAX_VISITS = 500_000;

/** The same limit for all expressions in one value. */
const MAX_VISITS_PER_VALUE = 2 * MAX_VISITS;

/** Cost of a function per item or two characters of its arguments, in visits, as measured. */
const COST = 0.25;

/** The same cost of functions that take longer or do not read their arguments. */
const costs: ReadonlyMap<string, number> = new Map([
  ['contains', 1 / 32],
  ...['not_null', 'to_array', 'type'].map((name) => [name, 0] as const),
  ...['map', 'max', 'max_by', 'min', 'min_by', 'reverse', 'trim', 'trim_left', 'trim_right'].map(
    (name) => [name, 1] as const,
  ),
  ...['sort', 'sort_by', 'zip'].map((name) => [name, 2] as const),
  ...['from_items', 'group_by'].map((name) => [name, 4] as const),
]);

/** Listing an object's members costs this many items per member. */
const MEMBER_SIZE = 16;

/** Characters that are compared, or split for a slice, per visit. */
const COMPARED_PER_VISIT = 1_024;
const SLICED_PER_VISIT = 8;

/** Characters of JSON that are written, or only counted, per visit. */
const WRITTEN_PER_VISIT = 16;
const COUNTED_PER_VISIT = 64;

/** The most visits of a quick evaluation, about a millisecond. */
const QUICK_VISITS = 10_000;

/** Remaining visits of the current evaluation. */
let visits = 0;
/** Remaining visits under {@link evaluateQuickly}, and whether they bound the current evaluation. */
let quickVisitsLeft = Infinity;
let isBoundQuickly = false;
/** Remaining visits of all evaluations for the same value. */
let visitsLeftForValue = Infinity;
/** Variables of the enclosing `let` expressions. */
let variables: ReadonlyMap<string, unknown> = new Map();
const interpreter = bounded(TreeInterpreter.withScope({}));

/**
 * Evaluates a parsed expression.
 * @throws CostlyExpressionError under {@link evaluateQuickly}
 * @throws Error for any other failure of the expression, such as reading `secrets`
 */
export function evaluateNode(node: Node, scope: unknown): unknown {
  const own = Math.min(MAX_VISITS, visitsLeftForValue);
  const limit = Math.min(own, quickVisitsLeft);
  isBoundQuickly = limit < own;
  visits = limit;
  variables = new Map();
  try {
    const value: unknown = interpreter.search(node, scope as Value);
    if (value instanceof PlacedSecrets) throw new Error(SECRET_RULE);
    const length = approximateLength(value, MAX_VALUE_LENGTH);
    if (length > MAX_VALUE_LENGTH) throw new Error('the result is too large');
    charge(length / COUNTED_PER_VISIT);
    return value ?? null;
  } finally {
    visitsLeftForValue -= limit - visits;
    quickVisitsLeft -= limit - visits;
  }
}

/** Evaluates the expressions of one value within a common limit. */
export function evaluateWithSharedLimit<T>(work: () => T): T {
  visitsLeftForValue = MAX_VISITS_PER_VALUE;
  try {
    return work();
  } finally {
    visitsLeftForValue = Infinity;
  }
}

/**
 * Evaluates expressions that take about a millisecond in all.
 * @throws CostlyExpressionError if they take longer; what `work` throws
 */
export function evaluateQuickly<T>(work: () => T): T {
  quickVisitsLeft = QUICK_VISITS;
  try {
    return work();
  } finally {
    quickVisitsLeft = Infinity;
  }
}

/** The member of a value that the expression `name` gives. */
export function member(value: unknown, name: string): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  if (value instanceof PlacedSecrets) throw new Error(SECRET_RULE);
  return Object.hasOwn(value, name) ? ((value as Record<string, unknown>)[name] ?? null) : null;
}

function bounded(target: Interpreter): Interpreter {
  const visit = target.visit.bind(target);
  // The library's types only know JSON and expressions.
  const byLibrary: Visit = (node, value) => visit(node, value as Value);
  const visitNested: Visit = (node, value) => target.visit(node, value as Value);
  target.visit = (node, value) => {
    charge(1);
    if (node.type === 'Function') return call(target, node, value);
    return evaluate(node, value, visitNested, byLibrary) as Value;
  };
  return target;
}

/**
 * Evaluates a node.
 * @param visit evaluates nested nodes
 * @param byLibrary the library's own evaluation of a node
 */
function evaluate(node: Node, value: unknown, visit: Visit, byLibrary: Visit): unknown {
  switch (node.type) {
    case 'Field':
      return member(value, node.name);
    case 'MultiSelectHash':
      return objectOf(node.children.map((each) => [each.name, visit(each.value, value)]));
    case 'Flatten': {
      const list = visit(node.child, value);
      return Array.isArray(list) ? flattened(list) : null;
    }
    case 'LetExpression':
      return withVariables(node, value, visit);
    case 'Variable':
      if (!variables.has(node.name)) throw new Error(`unknown variable ${node.name}`);
      return variables.get(node.name);
    case 'Slice':
      if (typeof value === 'string') charge(value.length / SLICED_PER_VISIT);
      return byLibrary(node, value);
    case 'Arithmetic': {
      const left = visit(node.left, value) as Value;
      const right = visit(node.right, value) as Value;
      const operands = {
        left: { type: 'Literal', value: left },
        right: { type: 'Literal', value: right },
      } as const;
      return requireExact(byLibrary({ ...node, ...operands }, value), [left, right]);
    }
    case 'Comparator':
      if (node.name === 'EQ') return areEqual(visit(node.left, value), visit(node.right, value));
      if (node.name === 'NE') return !areEqual(visit(node.left, value), visit(node.right, value));
      return byLibrary(node, value);
    case 'NotExpression':
      return !holds(visit(node.child, value));
    case 'AndExpression': {
      const left = visit(node.left, value);
      return holds(left) ? visit(node.right, value) : left;
    }
    case 'OrExpression': {
      const left = visit(node.left, value);
      return holds(left) ? left : visit(node.right, value);
    }
    case 'Ternary':
      return visit(holds(visit(node.condition, value)) ? node.trueExpr : node.falseExpr, value);
    case 'FilterProjection': {
      const base = visit(node.left, value);
      if (!Array.isArray(base)) return null;
      const found: readonly unknown[] = base.filter((item) => holds(visit(node.condition, item)));
      return found.map((item) => visit(node.right, item)).filter((item) => item !== null);
    }
    default:
      return byLibrary(node, value);
  }
}

/** Replaces the library's `let`, whose cost is quadratic in the number of names. */
function withVariables(
  { bindings, expression }: Extract<Node, { readonly type: 'LetExpression' }>,
  value: unknown,
  visit: Visit,
): unknown {
  const before = variables;
  const bound = bindings.map((each) => [each.variable, visit(each.reference, value)] as const);
  charge((before.size + bound.length) * COST);
  variables = new Map([...before, ...bound]);
  try {
    return visit(expression, value);
  } finally {
    variables = before;
  }
}

function call(target: Interpreter, { name, children }: FunctionNode, value: Value | Node): Value {
  const args = children.map((child) => target.visit(child, value));
  const cost = costs.get(name) ?? COST;
  if (cost > 0) for (const arg of args) charge(sizeOf(arg) * cost);
  let result = (ownFunctions.get(name) ?? functionOverrides.get(name))?.(args, charge);
  if (result === undefined) result = callOnItems(target, name, args);
  if (result === undefined) result = target.runtime.callFunction(name, args);
  return withinBounds(name, requireExact(result, args) as Value);
}

/** @throws Error if the evaluation exceeds its limit */
function charge(cost: number): void {
  visits -= cost;
  if (visits >= 0) return;
  throw isBoundQuickly ? new CostlyExpressionError() : new Error('it takes too many steps');
}

/** The size of a function's argument, in items. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length >>> 1;
  if (!isLarge(value)) return 0;
  return Array.isArray(value) ? value.length : MEMBER_SIZE * Object.keys(value).length;
}

/** Whether a value can contain others. */
function isLarge(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof PlacedSecrets);
}

/** Falsy values of JMESPath: null, false, and empty strings, lists and objects. Zero is true. */
export function isFalsy(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '') return true;
  if (typeof value !== 'object') return false;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

/** Whether a condition is met. Checking an object for emptiness costs as much as listing it. */
function holds(value: unknown): boolean {
  if (isLarge(value) && !Array.isArray(value)) charge(sizeOf(value) * COST);
  return !isFalsy(value);
}

/** Equality of JSON values as in JMESPath, within the limit. */
function areEqual(one: unknown, other: unknown): boolean {
  if (typeof one === 'string' && typeof other === 'string') {
    if (one.length === other.length) charge(one.length / COMPARED_PER_VISIT);
    return one === other;
  }
  if (one === other || !isLarge(one) || !isLarge(other)) return one === other;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, i) => {
      charge(COST);
      return areEqual(item, other[i]);
    });
  }
  charge((sizeOf(one) + sizeOf(other)) * COST);
  const members = Object.entries(one);
  return (
    members.length === Object.keys(other).length &&
    members.every(
      ([name, held]) => Object.hasOwn(other, name) && areEqual(held, member(other, name)),
    )
  );
}

function withinBounds<T>(name: string, value: T): T {
  const tooLong =
    (typeof value === 'string' && value.length > MAX_STRING_LENGTH) ||
    (Array.isArray(value) && value.length > MAX_ARRAY_LENGTH);
  if (tooLong) throw new Error(`the result of ${name}() is too large`);
  // A long value is charged here, because the next function has to read it.
  if (typeof value === 'string' || Array.isArray(value)) visits -= value.length >>> 6;
  return value;
}

/** Checks and replacements of library functions, like {@link functionOverrides}. */
const ownFunctions: ReadonlyMap<string, FunctionOverride> = new Map<string, FunctionOverride>([
  ['contains', contains],
  ['sum', checkSum],
  ['to_string', checkStringLength],
]);

/**
 * Functions that order a list or evaluate an expression for each item, and `merge`. The library's
 * versions are unbounded and evaluate without the root and variables. Undefined for other
 * functions, and for arguments that the library will reject.
 */
function callOnItems(target: Interpreter, name: string, args: readonly unknown[]): unknown {
  // The library rejects a call without arguments, or with one that is not an object.
  if (name === 'merge' && args.length > 0 && args.every(isObject)) {
    return objectOf(args.flatMap((arg) => Object.entries(arg)));
  }
  const order = orders.get(name);
  if (order === undefined && name !== 'map' && name !== 'group_by') return undefined;
  if (order !== undefined && !name.endsWith('_by')) {
    const [list] = args;
    if (args.length !== 1 || !Array.isArray(list) || !areSortKeys(list)) return undefined;
    return order(
      list.map((item) => ({ key: item, item })),
      charge,
    );
  }
  const [list, by] = name === 'map' ? [args[1], args[0]] : args;
  if (args.length !== 2 || !Array.isArray(list) || !isReference(by)) return undefined;
  const items: readonly unknown[] = list;
  const keys: readonly unknown[] = items.map((item) => target.visit(by, item as Value));
  if (name === 'map') return keys;
  // Members of an object have string names.
  if (!areSortKeys(keys) || (order === undefined && typeof keys[0] === 'number')) {
    const expected = order === undefined ? 'strings' : 'all numbers or all strings';
    throw new Error(`${name}() needs keys that are ${expected}`);
  }
  const keyed = keys.map((key, i) => ({ key, item: items[i] }));
  return order === undefined ? groupByKey(keyed) : order(keyed, charge);
}

/** Keeps `__proto__` as an own property; the library would set the prototype. */
function objectOf(members: readonly (readonly [name: string, value: unknown])[]): object {
  return Object.fromEntries(members);
}

function isObject(value: unknown): value is object {
  return isLarge(value) && !Array.isArray(value) && !isReference(value);
}

const orders: ReadonlyMap<string, (list: readonly Keyed[], charge: Charge) => unknown> = new Map([
  ['sort', sortByKey],
  ['sort_by', sortByKey],
  ['max', maxByKey],
  ['max_by', maxByKey],
  ['min', minByKey],
  ['min_by', minByKey],
]);

/** Whether a value is an expression (`&name`) passed to a function. */
function isReference(value: unknown): value is Node {
  return isLarge(value) && 'expref' in value && value.expref === true;
}

/**
 * Replaces the library's `contains`: it compares no lists or objects and is slow for long strings.
 */
function contains(args: readonly unknown[]): boolean | undefined {
  const [held, part] = args;
  if (args.length !== 2) return undefined;
  if (Array.isArray(held)) {
    return isLarge(part) ? held.some((item) => areEqual(item, part)) : held.includes(part);
  }
  if (typeof held !== 'string') return undefined;
  return typeof part === 'string' && (part === '' || indexOfPart(held, part, charge) !== -1);
}

/** Flattens one level of a list; charged first, because the result may be much larger. */
function flattened(list: readonly unknown[]): readonly unknown[] {
  let length = 0;
  for (const item of list) length += Array.isArray(item) ? item.length : 1;
  if (length > MAX_ARRAY_LENGTH) throw new Error('the flattened list is too long');
  charge((list.length + length) * COST);
  return list.flat();
}

function checkStringLength([value]: readonly unknown[]): undefined {
  const length = approximateLength(value, MAX_STRING_LENGTH);
  if (length > MAX_STRING_LENGTH) throw new Error('the string is too long');
  charge(length / WRITTEN_PER_VISIT);
}
