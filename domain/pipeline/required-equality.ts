import { compile } from '@jmespath-community/jmespath';
import { member, type ExpressionNode } from './jmespath.ts';

/** A plain path that must equal a constant for an expression to be true. */
export interface RequiredEquality {
  readonly path: readonly string[];
  /** The constant, in the form of {@link equalityKey}. */
  readonly key: string;
}

/**
 * An equality that an expression requires, as in `event.payload.id == '7' && …`. Expressions can be looked up by it.
 * null if none is found.
 */
export function requiredEquality(expression: string): RequiredEquality | null {
  try {
    return findIn(compile(expression));
  } catch {
    // The evaluation of the expression will report its fault.
    return null;
  }
}

function findIn(node: ExpressionNode): RequiredEquality | null {
  if (node.type === 'AndExpression') return findIn(node.left) ?? findIn(node.right);
  if (node.type !== 'Comparator' || node.name !== 'EQ') return null;
  return equalityOf(node.left, node.right) ?? equalityOf(node.right, node.left);
}

function equalityOf(one: ExpressionNode, other: ExpressionNode): RequiredEquality | null {
  const path = pathOf(one);
  if (path === null || other.type !== 'Literal') return null;
  const key = equalityKey(other.value);
  return key === null ? null : { path, key };
}

function pathOf(node: ExpressionNode): readonly string[] | null {
  if (node.type === 'Field') return [node.name];
  if (node.type !== 'Subexpression' || node.right.type !== 'Field') return null;
  const left = pathOf(node.left);
  return left && [...left, node.right.name];
}

/** A key that is the same for equal strings, numbers, booleans and nulls; null for other values. */
export function equalityKey(value: unknown): string | null {
  if (typeof value === 'object' && value !== null) return null;
  return `${typeof value} ${String(value)}`;
}

/** The value at a path, as an expression reads it. */
export function valueAt(path: readonly string[], scope: unknown): unknown {
  return path.reduce(member, scope);
}
