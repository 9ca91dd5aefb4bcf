/** What the items of a list are put in order by: all of them numbers, or all of them texts. */
export type Key = number | string;

/** An item with its key. */
export interface Keyed {
  readonly key: Key;
  readonly item: unknown;
}

/** Is told what comparing texts costs; may throw where that is too much. */
export type Pay = (cost: number) => void;

/** Characters that are compared for what one number costs. */
const CHARACTERS = 64;

/** Whether these can be put in order. */
export function areKeys(values: readonly unknown[]): values is readonly Key[] {
  const kind = typeof values[0];
  if (kind !== 'number' && kind !== 'string') return values.length === 0;
  return values.every((value) => typeof value === kind);
}

/** Sorted by their keys; those of one key stay as they stood. */
export function sorted(list: readonly Keyed[], pay: Pay): readonly unknown[] {
  return [...list].sort((one, other) => compare(one.key, other.key, pay)).map(({ item }) => item);
}

/** The first of those with the largest key; null where there are none. */
export function largest(list: readonly Keyed[], pay: Pay): unknown {
  return outermost(list, (one, other) => compare(one, other, pay));
}

/** The first of those with the smallest key; null where there are none. */
export function smallest(list: readonly Keyed[], pay: Pay): unknown {
  return outermost(list, (one, other) => compare(other, one, pay));
}

/** An object with a list for each key, of those that have it. */
export function grouped(list: readonly Keyed[]): object {
  const groups = new Map<Key, unknown[]>();
  for (const { key, item } of list) {
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return Object.fromEntries(groups);
}

function outermost(list: readonly Keyed[], order: (one: Key, other: Key) => number): unknown {
  let found = list[0];
  for (const each of list) if (found !== undefined && order(each.key, found.key) > 0) found = each;
  return found?.item ?? null;
}

/** Texts by their characters' numbers. */
function compare(one: Key, other: Key, pay: Pay): number {
  if (typeof one === 'number' || typeof other === 'number') return Number(one) - Number(other);
  const end = Math.min(one.length, other.length);
  let at = 0;
  while (at < end && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  pay(at / CHARACTERS);
  if (at === end) return one.length - other.length;
  return rank(one.charCodeAt(at)) - rank(other.charCodeAt(at));
}

/** Code units in the order of the characters for which they stand: halves of pairs behind all others. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}
