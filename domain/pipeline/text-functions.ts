import { numberOf } from './exact-arithmetic.ts';
import type { Pay } from './ordering.ts';
import { lengthOf, piecesOf, placeOf, startOf } from './text-search.ts';

/** Longest text, in characters, and longest array that a function may give. */
export const MOST_TEXT = 4_000_000;
export const MOST_ITEMS = 500_000;

/** Characters of texts that are put together for a visit. */
const JOINED = 16;

/**
 * A function in the place of the library's: takes the arguments, and what is told of the cost of more than to look at
 * them. Undefined leaves it to the library, as the complaint about arguments of the wrong type or number is.
 */
export type TextFunction = (args: readonly unknown[], pay: Pay) => unknown;

/**
 * Functions of texts: the library's own take quadratic time, run out of stack, make more than there may be, or give what
 * JMESPath does not say.
 */
export const textFunctions: ReadonlyMap<string, TextFunction> = new Map<string, TextFunction>([
  ['find_first', (args, pay) => find(args, pay, false)],
  ['find_last', (args, pay) => find(args, pay, true)],
  ['join', join],
  ['pad_left', (args) => pad(args, true)],
  ['pad_right', (args) => pad(args, false)],
  ['replace', replace],
  ['reverse', ([text]) => (typeof text === 'string' ? [...text].reverse().join('') : undefined)],
  ['split', split],
  ['to_number', toNumber],
  // The library trims by regular expressions.
  ['trim', (args) => trim(args, true, true)],
  ['trim_left', (args) => trim(args, true, false)],
  ['trim_right', (args) => trim(args, false, true)],
]);

/** Whether arguments are of these types; the last of them may be left out. */
function fit(args: readonly unknown[], types: readonly string[], optional = 0): boolean {
  return (
    args.length <= types.length &&
    args.length >= types.length - optional &&
    args.every((arg, i) => typeof arg === types[i])
  );
}

/**
 * Where a text stands in another, within the slice `[start:end]` of that, for the first time or the last: the number of
 * the character. The library counts units of UTF-16, and takes an end of zero for none.
 */
function find(args: readonly unknown[], pay: Pay, last: boolean): number | null | undefined {
  if (!fit(args, ['string', 'string', 'number', 'number'], 2)) return undefined;
  const [text, part, start = 0, end = Infinity] = args as [string, string, number?, number?];
  if (![start, end].every((place) => place === Infinity || Number.isInteger(place)))
    return undefined;
  if (part === '') return null;
  const from = placeIn(text, start);
  const place = placeOf(text.slice(from, placeIn(text, end)), part, pay, 0, last);
  return place === -1 ? null : lengthOf(text.slice(0, from + place));
}

/** Where the character of a number begins, which is counted from the end where it is negative. */
function placeIn(text: string, character: number): number {
  return startOf(text, character < 0 ? Math.max(0, lengthOf(text) + character) : character);
}

/** Texts one behind the other, with another in between. */
function join(args: readonly unknown[], pay: Pay): undefined {
  const [between, list] = args;
  if (typeof between !== 'string' || !Array.isArray(list)) return;
  let length = between.length * Math.max(0, list.length - 1);
  for (const text of list as readonly unknown[])
    if (typeof text === 'string') length += text.length;
  requireShort('join', length, pay);
}

/** A text with others in the place of a part, `count` times at most: what is put in is neither read nor replaced again. */
function replace(args: readonly unknown[], pay: Pay): string | undefined {
  if (!fit(args, ['string', 'string', 'string', 'number'], 1)) return undefined;
  const [text, part, by, count = Infinity] = args as [string, string, string, number?];
  if (!isCount(count)) return undefined;
  const pieces = piecesOf(text, part, count, pay);
  const places = Math.max(0, pieces.length - 1);
  requireShort('replace', text.length + places * (by.length - part.length), pay);
  return pieces.join(by);
}

function split(args: readonly unknown[], pay: Pay): readonly string[] | undefined {
  if (!fit(args, ['string', 'string', 'number'], 1)) return undefined;
  const [text, part, count = Infinity] = args as [string, string, number?];
  return isCount(count) ? piecesOf(text, part, count, pay) : undefined;
}

/** @throws Error where a function would make a text that is too long, before it does */
function requireShort(name: string, length: number, pay: Pay): void {
  if (length > MOST_TEXT) throw new Error(`${name}() gives too much`);
  pay(length / JOINED);
}

/** Whether this may be how often at most something is done; all else is for the library to complain about. */
function isCount(value: number): boolean {
  return value === Infinity || (Number.isInteger(value) && value >= 0);
}

/** A text made as wide as is asked for. The library leaves an empty one as it is, and counts units of UTF-16. */
function pad(args: readonly unknown[], left: boolean): string | undefined {
  if (!fit(args, ['string', 'number', 'string'], 1)) return undefined;
  const [text, width, padding = ''] = args as [string, number, string?];
  if (width > MOST_TEXT) throw new Error('the width is too large');
  const one = padding === '' ? ' ' : padding;
  if (!isCount(width)) return undefined;
  if (lengthOf(one) > 1) throw new Error('what a text is padded with has one character');
  const added = one.repeat(Math.max(0, width - lengthOf(text)));
  return left ? added + text : text + added;
}

/**
 * A number, or the number that a string says in JSON; null for all else. The library takes all that JavaScript does.
 * @throws Error for one that JavaScript cannot represent
 */
function toNumber([value, ...others]: readonly unknown[]): number | null | undefined {
  if (typeof value !== 'string' || others.length > 0) return undefined;
  if (!/^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/.test(value)) return null;
  return numberOf(value);
}

function trim(args: readonly unknown[], left: boolean, right: boolean): string | undefined {
  if (!fit(args, ['string', 'string'], 1)) return undefined;
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
