import { parseNumber } from './exact-arithmetic.ts';
import type { Charge } from './ordering.ts';
import { characterCount, splitBy, indexOfPart, characterPosition } from './string-search.ts';

/** The most characters of a string, and the most items of an array, that a function may return. */
export const MAX_STRING_LENGTH = 4_000_000;
export const MAX_ARRAY_LENGTH = 500_000;

/** Characters that are joined per visit. */
const JOINED_PER_VISIT = 16;

/**
 * Replaces a library function: takes the arguments and a callback for costs beyond reading them.
 * Returns undefined to call the library's, which also reports invalid arguments.
 */
export type FunctionOverride = (args: readonly unknown[], charge: Charge) => unknown;

/** Functions whose library versions are slow, overflow the stack or deviate from JMESPath. */
export const functionOverrides: ReadonlyMap<string, FunctionOverride> = new Map<
  string,
  FunctionOverride
>([
  ['find_first', (args, charge) => find(args, charge, false)],
  ['find_last', (args, charge) => find(args, charge, true)],
  ['join', join],
  ['pad_left', (args) => pad(args, true)],
  ['pad_right', (args) => pad(args, false)],
  ['replace', replace],
  ['reverse', ([text]) => (typeof text === 'string' ? [...text].reverse().join('') : undefined)],
  ['split', split],
  ['to_number', toNumber],
  // The library trims by slow regular expressions.
  ['trim', (args) => trim(args, true, true)],
  ['trim_left', (args) => trim(args, true, false)],
  ['trim_right', (args) => trim(args, false, true)],
]);

/** Whether the arguments have these types; the last `optional` ones may be omitted. */
function matchTypes(args: readonly unknown[], types: readonly string[], optional = 0): boolean {
  return (
    args.length <= types.length &&
    args.length >= types.length - optional &&
    args.every((arg, i) => typeof arg === types[i])
  );
}

/**
 * The position of a string's first or last occurrence within the slice `[start:end]`, in
 * characters. The library counts UTF-16 units and ignores an end of zero.
 */
function find(args: readonly unknown[], charge: Charge, last: boolean): number | null | undefined {
  if (!matchTypes(args, ['string', 'string', 'number', 'number'], 2)) return undefined;
  const [text, part, start = 0, end = Infinity] = args as [string, string, number?, number?];
  if (![start, end].every((place) => place === Infinity || Number.isInteger(place)))
    return undefined;
  if (part === '') return null;
  const from = placeIn(text, start);
  const place = indexOfPart(text.slice(from, placeIn(text, end)), part, charge, 0, last);
  return place === -1 ? null : characterCount(text.slice(0, from + place));
}

/** The UTF-16 position of a character; a negative number counts from the end. */
function placeIn(text: string, character: number): number {
  return characterPosition(
    text,
    character < 0 ? Math.max(0, characterCount(text) + character) : character,
  );
}

/** Checks the length of a join; the library joins. */
function join(args: readonly unknown[], charge: Charge): undefined {
  const [between, list] = args;
  if (typeof between !== 'string' || !Array.isArray(list)) return;
  let length = between.length * Math.max(0, list.length - 1);
  for (const text of list as readonly unknown[])
    if (typeof text === 'string') length += text.length;
  requireLength('join', length, charge);
}

/** Replaces at most `count` occurrences, without searching the replacement again. */
function replace(args: readonly unknown[], charge: Charge): string | undefined {
  if (!matchTypes(args, ['string', 'string', 'string', 'number'], 1)) return undefined;
  const [text, part, by, count = Infinity] = args as [string, string, string, number?];
  if (!isCount(count)) return undefined;
  const pieces = splitBy(text, part, count, charge);
  const places = Math.max(0, pieces.length - 1);
  requireLength('replace', text.length + places * (by.length - part.length), charge);
  return pieces.join(by);
}

function split(args: readonly unknown[], charge: Charge): readonly string[] | undefined {
  if (!matchTypes(args, ['string', 'string', 'number'], 1)) return undefined;
  const [text, part, count = Infinity] = args as [string, string, number?];
  return isCount(count) ? splitBy(text, part, count, charge) : undefined;
}

/** @throws Error if a function's result would be too long */
function requireLength(name: string, length: number, charge: Charge): void {
  if (length > MAX_STRING_LENGTH) throw new Error(`the result of ${name}() is too large`);
  charge(length / JOINED_PER_VISIT);
}

/** Whether this is a valid count; the library reports others. */
function isCount(value: number): boolean {
  return value === Infinity || (Number.isInteger(value) && value >= 0);
}

/** Pads a string to a width. The library does not pad an empty string and counts UTF-16 units. */
function pad(args: readonly unknown[], left: boolean): string | undefined {
  if (!matchTypes(args, ['string', 'number', 'string'], 1)) return undefined;
  const [text, width, padding = ''] = args as [string, number, string?];
  if (width > MAX_STRING_LENGTH) throw new Error('the width is too large');
  const one = padding === '' ? ' ' : padding;
  if (!isCount(width)) return undefined;
  if (characterCount(one) > 1) throw new Error('the padding must be a single character');
  const added = one.repeat(Math.max(0, width - characterCount(text)));
  return left ? added + text : text + added;
}

/**
 * Converts a JSON number in a string; null for other strings. The library accepts all strings that JavaScript accepts.
 * @throws Error for a number that JavaScript cannot represent
 */
function toNumber([value, ...others]: readonly unknown[]): number | null | undefined {
  if (typeof value !== 'string' || others.length > 0) return undefined;
  if (!/^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/.test(value)) return null;
  return parseNumber(value);
}

function trim(args: readonly unknown[], left: boolean, right: boolean): string | undefined {
  if (!matchTypes(args, ['string', 'string'], 1)) return undefined;
  const [text, characters = ''] = args as [string, string?];
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
