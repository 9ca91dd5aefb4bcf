import type { Filter, Projection, Sort } from '../../../projections/read-model.ts';

/**
 * Which index a query goes along. SQLite would have to guess, as it is told nothing of how the values lie; here each
 * index was declared for a list, and the one with most of what is asked for at its front reads least.
 */

/** A filter by several values of a field. */
export type InFilter = Extract<Filter, { readonly op: 'in' }>;

/** Values of an `in` that are read one by one and merged, at most; each is a search of its own. */
const MOST_MERGED = 8;

/**
 * The fields of the index to go along: those at its front that are asked for by value, and the next, by which it is
 * ordered or asked for by a span. Of indexes that fit alike the first. Null where there is none.
 *
 * @param sort what the index has to give the order of; empty for what needs none
 */
export function bestWay(
  projection: Projection,
  filters: readonly Filter[],
  sort: readonly Sort[],
): ReadonlySet<string> | null {
  const equal = new Set(filters.filter(({ op }) => op === 'eq').map(({ field }) => field));
  for (const filter of filters) {
    const keepsOrder = sort.length === 0 || filter === mergedIn(projection, filters, sort);
    if (filter.op === 'in' && keepsOrder) equal.add(filter.field);
  }
  let best: { readonly way: ReadonlySet<string>; readonly fits: number } | null = null;
  for (const index of projection.indexes) {
    if (!holdsAll(projection, index, filters)) continue;
    const { head, rest } = split(index, equal);
    if (!sort.every(({ field }, i) => rest[i] === field)) continue;
    const [next] = rest;
    const isSpan = filters.some(({ field, op }) => field === next && isComparison(op));
    // A span counts for less than any value.
    const fits = 2 * head.length + (isSpan ? 1 : 0);
    if (fits === 0 && sort.length === 0) continue;
    if (best !== null && best.fits >= fits) continue;
    best = { way: new Set(next === undefined ? head : [...head, next]), fits };
  }
  return best?.way ?? null;
}

/** The `in` of few values that stands, with all that is equal, before the order in some index. */
export function mergedIn(
  projection: Projection,
  filters: readonly Filter[],
  sort: readonly Sort[],
): InFilter | undefined {
  const wide = filters.filter((filter) => filter.op === 'in');
  const [one] = wide;
  if (wide.length !== 1 || one === undefined) return undefined;
  if (one.value.length < 2 || one.value.length > MOST_MERGED) return undefined;
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

/** What of an index is equal in all that is asked for, and what comes behind. */
function split(index: readonly string[], equal: ReadonlySet<string>) {
  const lead = index.findIndex((field) => !equal.has(field));
  const length = lead === -1 ? index.length : lead;
  return { head: index.slice(0, length), rest: index.slice(length) };
}

/** Whether an index has every document that the filters let through: one with a sparse field only where that has a value. */
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
