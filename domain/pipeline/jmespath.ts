import { TreeInterpreter } from '@jmespath-community/jmespath';
import { checkSum, exact } from './exact-arithmetic.ts';
import { PipelineFault } from './fault.ts';
import { areKeys, grouped, largest, smallest, sorted, type Keyed, type Pay } from './ordering.ts';
import { Secrets } from './secrets.ts';
import { MOST_GIVEN, writtenLength } from './size.ts';
import { MOST_ITEMS, MOST_TEXT, textFunctions, type TextFunction } from './text-functions.ts';
import { placeOf } from './text-search.ts';

/**
 * JMESPath as the library evaluates it, made fit for expressions that anyone may write:
 *
 * - a field is one of the object's own; `constructor` and the like are null where nobody set them;
 * - evaluation is bounded: no expression holds the event loop or fills the memory;
 * - what orders a list does so as JMESPath says, by the keys of all items once: the library sorts numbers as texts, and
 *   finds nothing that is largest by a text;
 * - `secrets` gives out its members by name only.
 *
 * The library's interpreter asks itself for every node (`this.visit`), which is where this steps in.
 */
type Interpreter = typeof TreeInterpreter;
type Node = Parameters<Interpreter['search']>[0];
type Value = Parameters<Interpreter['search']>[1];
type Visit = (node: Node, value: unknown) => unknown;
type FunctionNode = Extract<Node, { readonly type: 'Function' }>;

export type { Node as ExpressionNode };

/** Nodes that one evaluation may visit: some 50 ms. */
const MOST_VISITS = 500_000;

/** The same of all the expressions in one value. */
const MOST_VISITS_TOGETHER = 2 * MOST_VISITS;

/** What a function costs for each item or two characters that it is given, in visits. Measured, as all of these. */
const COST = 0.25;

/** The same of those that look at each of them longer, or not at all. */
const costs: ReadonlyMap<string, number> = new Map([
  ['contains', 1 / 32],
  ...['not_null', 'to_array', 'type'].map((name) => [name, 0] as const),
  ...['map', 'max', 'max_by', 'min', 'min_by', 'reverse', 'trim', 'trim_left', 'trim_right'].map(
    (name) => [name, 1] as const,
  ),
  ...['sort', 'sort_by', 'zip'].map((name) => [name, 2] as const),
  ...['from_items', 'group_by'].map((name) => [name, 4] as const),
]);

/** To list an object's members takes as long as so many items for each of them. */
const ITEMS_OF_MEMBER = 16;

/** Characters that are compared, or become a list of characters to be cut, for a visit. */
const COMPARED = 1_024;
const CUT = 8;

/** Characters of JSON text that are written, or only counted, for a visit. */
const WRITTEN = 16;
const COUNTED = 64;

/** What the evaluation that goes on may still visit. */
let visits = 0;
/** The same of those that are done together with it. */
let together = Infinity;
/** What `let` has given names to where the evaluation is. */
let variables: ReadonlyMap<string, unknown> = new Map();
const interpreter = bounded(TreeInterpreter.withScope({}));

/**
 * Evaluates a parsed expression.
 * @throws PipelineFault for a secret that is missing or not named
 * @throws Error for whatever the expression gets wrong
 */
export function evaluateNode(node: Node, scope: unknown): unknown {
  const most = Math.min(MOST_VISITS, together);
  visits = most;
  variables = new Map();
  try {
    const value: unknown = interpreter.search(node, scope as Value);
    if (value instanceof Secrets) throw new PipelineFault('secrets are asked for by name');
    const length = writtenLength(value, MOST_GIVEN);
    if (length > MOST_GIVEN) throw new Error('it gives too much');
    pay(length / COUNTED);
    return value ?? null;
  } finally {
    together -= most - visits;
  }
}

/** Evaluates expressions one after the other, within bounds that are those of all together. */
export function evaluateTogether<T>(work: () => T): T {
  together = MOST_VISITS_TOGETHER;
  try {
    return work();
  } finally {
    together = Infinity;
  }
}

/** One member of a value, as the expression `name` gives it. */
export function member(value: unknown, name: string): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return null;
  if (value instanceof Secrets) return value.get(name);
  return Object.hasOwn(value, name) ? ((value as Record<string, unknown>)[name] ?? null) : null;
}

function bounded(target: Interpreter): Interpreter {
  const visit = target.visit.bind(target);
  // What is visited is of JSON, as the library knows it, or an expression.
  const given: Visit = (node, value) => visit(node, value as Value);
  const own: Visit = (node, value) => target.visit(node, value as Value);
  target.visit = (node, value) => {
    pay(1);
    if (node.type === 'Function') return call(target, node, value);
    return evaluate(node, value, own, given) as Value;
  };
  return target;
}

/** @param visit for the nodes within one @param given how the library evaluates a node */
function evaluate(node: Node, value: unknown, visit: Visit, given: Visit): unknown {
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
      if (!variables.has(node.name)) throw new Error(`there is no variable ${node.name}`);
      return variables.get(node.name);
    case 'Slice':
      if (typeof value === 'string') pay(value.length / CUT);
      return given(node, value);
    case 'Arithmetic': {
      const left = visit(node.left, value) as Value;
      const right = visit(node.right, value) as Value;
      const operands = {
        left: { type: 'Literal', value: left },
        right: { type: 'Literal', value: right },
      } as const;
      return exact(given({ ...node, ...operands }, value), [left, right]);
    }
    case 'Comparator':
      if (node.name === 'EQ') return areEqual(visit(node.left, value), visit(node.right, value));
      if (node.name === 'NE') return !areEqual(visit(node.left, value), visit(node.right, value));
      return given(node, value);
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
      return given(node, value);
  }
}

/** The library copies the names once for each of them, and looks one up through all `let`s around it. */
function withVariables(
  { bindings, expression }: Extract<Node, { readonly type: 'LetExpression' }>,
  value: unknown,
  visit: Visit,
): unknown {
  const before = variables;
  const bound = bindings.map((each) => [each.variable, visit(each.reference, value)] as const);
  pay((before.size + bound.length) * COST);
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
  if (cost > 0) for (const arg of args) pay(sizeOf(arg) * cost);
  let given = (ownFunctions.get(name) ?? textFunctions.get(name))?.(args, pay);
  if (given === undefined) given = ofItems(target, name, args);
  if (given === undefined) given = target.runtime.callFunction(name, args);
  return withinBounds(name, exact(given, args) as Value);
}

/** @throws Error where the evaluation has had all that it may */
function pay(cost: number): void {
  visits -= cost;
  if (visits < 0) throw new Error('it needs too many steps');
}

/** How much a function has to look at. */
function sizeOf(value: unknown): number {
  if (typeof value === 'string') return value.length >>> 1;
  if (!isLarge(value)) return 0;
  return Array.isArray(value) ? value.length : ITEMS_OF_MEMBER * Object.keys(value).length;
}

/** Whether a value may hold others, and so takes longer to look at. */
function isLarge(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof Secrets);
}

/** As in JMESPath: null, false, and what is empty. Zero is true. */
export function isFalsy(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '') return true;
  if (typeof value !== 'object') return false;
  return Array.isArray(value) ? value.length === 0 : Object.keys(value).length === 0;
}

/** Whether a condition is met. Even whether an object is empty takes as long as to list it. */
function holds(value: unknown): boolean {
  if (isLarge(value) && !Array.isArray(value)) pay(sizeOf(value) * COST);
  return !isFalsy(value);
}

/** As JMESPath compares values of JSON, and no longer than may be. */
function areEqual(one: unknown, other: unknown): boolean {
  if (typeof one === 'string' && typeof other === 'string') {
    if (one.length === other.length) pay(one.length / COMPARED);
    return one === other;
  }
  if (one === other || !isLarge(one) || !isLarge(other)) return one === other;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, i) => {
      pay(COST);
      return areEqual(item, other[i]);
    });
  }
  pay((sizeOf(one) + sizeOf(other)) * COST);
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
    (typeof value === 'string' && value.length > MOST_TEXT) ||
    (Array.isArray(value) && value.length > MOST_ITEMS);
  if (tooLong) throw new Error(`${name}() gives too much`);
  // What is long costs the next function as much, so it counts here.
  if (typeof value === 'string' || Array.isArray(value)) visits -= value.length >>> 6;
  return value;
}

/** Checks, and functions in the place of the library's, as {@link textFunctions} are. */
const ownFunctions: ReadonlyMap<string, TextFunction> = new Map<string, TextFunction>([
  ['contains', contains],
  ['sum', checkSum],
  ['to_string', checkText],
]);

/**
 * What orders a list, or evaluates an expression for each item: the library's own would do so without bounds, without
 * the root and without variables. And what merges objects. Undefined for all others, and for what the library has to complain about.
 */
function ofItems(target: Interpreter, name: string, args: readonly unknown[]): unknown {
  // No argument at all is for the library to complain about, as is one that is no object.
  if (name === 'merge' && args.length > 0 && args.every(isObject)) {
    return objectOf(args.flatMap((arg) => Object.entries(arg)));
  }
  const order = orders.get(name);
  if (order === undefined && name !== 'map' && name !== 'group_by') return undefined;
  if (order !== undefined && !name.endsWith('_by')) {
    const [list] = args;
    if (args.length !== 1 || !Array.isArray(list) || !areKeys(list)) return undefined;
    return order(
      list.map((item) => ({ key: item, item })),
      pay,
    );
  }
  const [list, by] = name === 'map' ? [args[1], args[0]] : args;
  if (args.length !== 2 || !Array.isArray(list) || !isReference(by)) return undefined;
  const items: readonly unknown[] = list;
  const keys: readonly unknown[] = items.map((item) => target.visit(by, item as Value));
  if (name === 'map') return keys;
  // Members of an object have texts for names.
  if (!areKeys(keys) || (order === undefined && typeof keys[0] === 'number')) {
    const wanted = order === undefined ? 'texts' : 'all numbers, or all texts';
    throw new Error(`${name}() needs keys that are ${wanted}`);
  }
  const keyed = keys.map((key, i) => ({ key, item: items[i] }));
  return order === undefined ? grouped(keyed) : order(keyed, pay);
}

/** Of the members of an object also `__proto__` is one of its own; to the library it is what it inherits from. */
function objectOf(members: readonly (readonly [name: string, value: unknown])[]): object {
  return Object.fromEntries(members);
}

function isObject(value: unknown): value is object {
  return isLarge(value) && !Array.isArray(value) && !isReference(value);
}

const orders: ReadonlyMap<string, (list: readonly Keyed[], pay: Pay) => unknown> = new Map([
  ['sort', sorted],
  ['sort_by', sorted],
  ['max', largest],
  ['max_by', largest],
  ['min', smallest],
  ['min_by', smallest],
]);

/** Whether a value is an expression (`&name`), as the library hands it to functions. */
function isReference(value: unknown): value is Node {
  return isLarge(value) && 'expref' in value && value.expref === true;
}

/** The library finds no list and no object in a list, and takes long to look for a long text. */
function contains(args: readonly unknown[]): boolean | undefined {
  const [held, part] = args;
  if (args.length !== 2) return undefined;
  if (Array.isArray(held)) {
    return isLarge(part) ? held.some((item) => areEqual(item, part)) : held.includes(part);
  }
  if (typeof held !== 'string') return undefined;
  return typeof part === 'string' && (part === '' || placeOf(held, part, pay) !== -1);
}

/** One level of lists within a list is dissolved. That may give much more than there was, so it is paid for before. */
function flattened(list: readonly unknown[]): readonly unknown[] {
  let length = 0;
  for (const item of list) length += Array.isArray(item) ? item.length : 1;
  if (length > MOST_ITEMS) throw new Error('a list becomes too long');
  pay((list.length + length) * COST);
  return list.flat();
}

function checkText([value]: readonly unknown[]): undefined {
  const length = writtenLength(value, MOST_TEXT);
  if (length > MOST_TEXT) throw new Error('the text is too long');
  pay(length / WRITTEN);
}
