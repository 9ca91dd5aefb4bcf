/** The sort key of an item; the keys of a list are all numbers or all strings. */
export type SortKey = number | string;

/** An item with its sort key. */
export interface Keyed {
  readonly key: SortKey;
  readonly item: unknown;
}

/** Charges the cost of comparing strings; throws if it exceeds a limit. */
export type Charge = (cost: number) => void;

/** Characters compared at the cost of one number. */
const CHARACTERS_PER_COST = 64;

/** Whether these values can be ordered. */
export function areSortKeys(values: readonly unknown[]): values is readonly SortKey[] {
  const kind = typeof values[0];
  if (kind !== 'number' && kind !== 'string') return values.length === 0;
  return values.every((value) => typeof value === kind);
}

/** The items, stably sorted by key. */
export function sortByKey(list: readonly Keyed[], charge: Charge): readonly unknown[] {
  return [...list]
    .sort((one, other) => compare(one.key, other.key, charge))
    .map(({ item }) => item);
}

/** The first item with the largest key; null if there are none. */
export function maxByKey(list: readonly Keyed[], charge: Charge): unknown {
  return outermost(list, (one, other) => compare(one, other, charge));
}

/** The first item with the smallest key; null if there are none. */
export function minByKey(list: readonly Keyed[], charge: Charge): unknown {
  return outermost(list, (one, other) => compare(other, one, charge));
}

/** The items grouped by key, as an object of lists. */
export function groupByKey(list: readonly Keyed[]): object {
  const groups = new Map<SortKey, unknown[]>();
  for (const { key, item } of list) {
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return Object.fromEntries(groups);
}

function outermost(
  list: readonly Keyed[],
  order: (one: SortKey, other: SortKey) => number,
): unknown {
  let found = list[0];
  for (const each of list) if (found !== undefined && order(each.key, found.key) > 0) found = each;
  return found?.item ?? null;
}

/** Compares strings by code point. */
function compare(one: SortKey, other: SortKey, charge: Charge): number {
  if (typeof one === 'number' || typeof other === 'number') return Number(one) - Number(other);
  const end = Math.min(one.length, other.length);
  let at = 0;
  while (at < end && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  charge(at / CHARACTERS_PER_COST);
  if (at === end) return one.length - other.length;
  return rank(one.charCodeAt(at)) - rank(other.charCodeAt(at));
}

/** Orders code units as their code points: surrogates come last. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
