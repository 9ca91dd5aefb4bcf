import type { Pay } from './ordering.ts';

/** Longest part that the engine looks for in a time that grows with the text alone. Characters. */
const MOST_QUICK = 200;

/** What a piece of a text costs that is cut out, in visits. */
const PIECE = 0.25;

/** Characters that are looked at one by one for a visit. */
const WALKED = 32;

/**
 * Where a part stands in a text for the first time, or, with `last`, for the last one; -1: nowhere. In a time that grows
 * with the length of both: to look for a long part with `indexOf`, or from the end, takes as long as one times the other.
 * @param part not empty @param pay for what is looked at one by one @param from where to begin
 */
export function placeOf(text: string, part: string, pay: Pay, from = 0, last = false): number {
  if (part.length > text.length - from) return -1;
  if (!last && part.length <= MOST_QUICK) return text.indexOf(part, from);
  const ends = repeatedStarts(part);
  let place = -1;
  let same = 0;
  let at = from;
  for (; at < text.length && (last || place === -1); at += 1) {
    const unit = text.charCodeAt(at);
    while (same > 0 && part.charCodeAt(same) !== unit) same = ends[same - 1] ?? 0;
    if (part.charCodeAt(same) === unit) same += 1;
    if (same < part.length) continue;
    place = at + 1 - same;
    same = ends[same - 1] ?? 0;
  }
  pay((at - from + part.length) / WALKED);
  return place;
}

/**
 * The pieces of a text between the places where a part stands; of an empty one, its characters.
 * @param most so many places at most @param pay for each piece, too
 */
export function piecesOf(text: string, part: string, most: number, pay: Pay): readonly string[] {
  const pieces: string[] = [];
  let from = 0;
  while (pieces.length < most) {
    const end = part === '' ? endOfCharacter(text, from) : placeOf(text, part, pay, from);
    if (end === -1) break;
    pay(PIECE);
    pieces.push(text.slice(from, end));
    from = end + part.length;
  }
  // Behind the last character there is nothing.
  if (part !== '' || text !== '') pieces.push(text.slice(from));
  return pieces;
}

/** Where the character that begins at a place ends; -1 for the last one. */
function endOfCharacter(text: string, from: number): number {
  const end = from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1);
  return end < text.length ? end : -1;
}

/** For each beginning of a part how many of its last characters are its first ones, too, but for all of them. */
function repeatedStarts(part: string): Uint32Array {
  const ends = new Uint32Array(part.length);
  for (let at = 1; at < part.length; at += 1) {
    const unit = part.charCodeAt(at);
    let same = ends[at - 1] ?? 0;
    while (same > 0 && part.charCodeAt(same) !== unit) same = ends[same - 1] ?? 0;
    ends[at] = part.charCodeAt(same) === unit ? same + 1 : 0;
  }
  return ends;
}

/** Whether a text has characters of two units each. */
const hasPairs = (text: string): boolean => /[\uD800-\uDBFF][\uDC00-\uDFFF]/.test(text);

/** How many characters a text has; those beyond the first 65,536 of Unicode, such as emoji, are one each. */
export function lengthOf(text: string): number {
  if (!hasPairs(text)) return text.length;
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** Where in a text its character of a number begins; that of the end, and all behind it, at the text's end. */
export function startOf(text: string, character: number): number {
  if (!hasPairs(text)) return Math.min(character, text.length);
  let at = 0;
  for (let left = character; left > 0 && at < text.length; left -= 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return at;
}
