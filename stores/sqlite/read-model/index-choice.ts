import type { Filter, Projection, Sort } from '../../../projections/read-model.ts';

/** Chooses the index of a query. SQLite has no statistics here and would guess. */

/** A filter by several values of a field. */
export type InFilter = Extract<Filter, { readonly op: 'in' }>;

/** The most values of an `in` that are read one by one and merged. */
const MAX_MERGED_VALUES = 8;

/**
 * The fields to use of the best index: the leading ones filtered by value, and the next one, if it gives the order or
 * is filtered by a range. The index with most such fields reads least; of equal ones the first wins. Null without any.
 * @param sort the order that the index must provide; may be empty
 */
export function chooseIndex(
  projection: Projection,
  filters: readonly Filter[],
  sort: readonly Sort[],
): ReadonlySet<string> | null {
  const equal = new Set(filters.filter(({ op }) => op === 'eq').map(({ field }) => field));
  for (const filter of filters) {
    const keepsOrder = sort.length === 0 || filter === mergeableIn(projection, filters, sort);
    if (filter.op === 'in' && keepsOrder) equal.add(filter.field);
  }
  let best: { readonly way: ReadonlySet<string>; readonly fits: number } | null = null;
  for (const index of projection.indexes) {
    if (!holdsAll(projection, index, filters)) continue;
    const { head, rest } = split(index, equal);
    if (!sort.every(({ field }, i) => rest[i] === field)) continue;
    const [next] = rest;
    const isSpan = filters.some(({ field, op }) => field === next && isComparison(op));
    // A range counts for less than any value.
    const fits = 2 * head.length + (isSpan ? 1 : 0);
    if (fits === 0 && sort.length === 0) continue;
    if (best !== null && best.fits >= fits) continue;
    best = { way: new Set(next === undefined ? head : [...head, next]), fits };
  }
  return best?.way ?? null;
}

/** The `in` with few values whose field, with those of all equalities, precedes the order in some index. */
export function mergeableIn(
  projection: Projection,
  filters: readonly Filter[],
  sort: readonly Sort[],
): InFilter | undefined {
  const wide = filters.filter((filter) => filter.op === 'in');
  const [one] = wide;
  if (wide.length !== 1 || one === undefined) return undefined;
  if (one.value.length < 2 || one.value.length > MAX_MERGED_VALUES) return undefined;
  const equal = new Set(filters.filter(({ op }) => op === 'eq').map(({ field }) => field));
  equal.add(one.field);
  const fits = projection.indexes.some((index) => {
    const { head, rest } = split(index, equal);
    return (
      head.includes(one.field) &&
      sort.every(({ field }, i) => rest[i] === field) &&
      holdsAll(projection, index, filters)
    );
  });
  return fits ? one : undefined;
}

/** An index divided into its leading fields filtered by value, and the rest. */
function split(index: readonly string[], equal: ReadonlySet<string>) {
  const lead = index.findIndex((field) => !equal.has(field));
  const length = lead === -1 ? index.length : lead;
  return { head: index.slice(0, length), rest: index.slice(length) };
}

/** Whether an index holds every document that passes the filters: a sparse field must be filtered by a value. */
function holdsAll(
  { sparse }: Projection,
  index: readonly string[],
  filters: readonly Filter[],
): boolean {
  return index.every(
    (field) =>
      sparse?.includes(field) !== true ||
      filters.some((filter) => filter.field === field && filter.value !== null),
  );
}

const isComparison = (op: Filter['op']): boolean => ['gt', 'gte', 'lt', 'lte'].includes(op);
