import type { ExpressionNode } from './jmespath.ts';

/** Nodes whose right side is evaluated on the value of the left one. */
const chains: ReadonlySet<string> = new Set(['Subexpression', 'Pipe']);

/** Nodes whose right side is evaluated on items of the left one. */
const projections: ReadonlySet<string> = new Set([
  'IndexExpression',
  'Projection',
  'FilterProjection',
  'ValueProjection',
]);

/**
 * Whether an expression reads the name `secrets` of its scope: by itself, or as a member of `@` or `$`. A member
 * `secrets` of other values does not count. Reads that this does not find, such as `map(&secrets.X, [@])`, fail when
 * they are evaluated.
 * @param isScope whether the node is evaluated on the scope
 */
export function readsSecrets(node: ExpressionNode, isScope = true): boolean {
  if (node.type === 'Field') return isScope && node.name === 'secrets';
  if (node.type === 'Literal') return false;
  const parts = node as unknown as Readonly<Record<string, unknown>>;
  return Object.entries(parts).some(([key, part]) => {
    if (key === 'right' && chains.has(node.type)) {
      return visit(part, givesScope(parts['left'] as ExpressionNode, isScope));
    }
    const isOfItems = projections.has(node.type) && key !== 'left';
    return visit(part, isScope && !isOfItems && node.type !== 'ExpressionReference');
  });
}

function visit(part: unknown, isScope: boolean): boolean {
  if (Array.isArray(part)) return part.some((each) => visit(each, isScope));
  if (typeof part !== 'object' || part === null) return false;
  if ('type' in part && typeof part.type === 'string') {
    return readsSecrets(part as ExpressionNode, isScope);
  }
  // A member of an object, or a variable's binding.
  return Object.values(part).some((each) => visit(each, isScope));
}

/** Whether a node evaluates to the scope itself. */
function givesScope(node: ExpressionNode, isScope: boolean): boolean {
  if (node.type === 'Root') return true;
  if (node.type === 'Current') return isScope;
  if (!chains.has(node.type)) return false;
  const { left, right } = node as unknown as Readonly<Record<'left' | 'right', ExpressionNode>>;
  return givesScope(right, givesScope(left, isScope));
}
