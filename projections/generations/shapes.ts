import type { Projection } from '../read-model.ts';

/** A projection in another shape, for what asks nothing of its documents. */
export function inShape(
  { readsOlder: _readsOlder, ...projection }: Projection,
  schema: number,
): Projection {
  return { ...projection, schema };
}
