import type { Charge } from './ordering.ts';

/** Longest part, in characters, that `indexOf` finds in linear time. */
const MAX_INDEX_OF_LENGTH = 200;

/** Cost of cutting out a piece, in visits. */
const PIECE_COST = 0.25;

/** Characters that are compared per visit. */
const COMPARED_PER_VISIT = 32;

/**
 * The position of the first or, with `last`, the last occurrence of a part; -1 if there is none. Takes linear time
 * (Knuth-Morris-Pratt), but `indexOf` with a long part or from the end takes quadratic time.
 * @param part not empty
 * @param charge charges compared characters
 * @param from the position at which the search begins
 */
export function indexOfPart(
  text: string,
  part: string,
  charge: Charge,
  from = 0,
  last = false,
): number {
  if (part.length > text.length - from) return -1;
  if (!last && part.length <= MAX_INDEX_OF_LENGTH) return text.indexOf(part, from);
  const ends = failureTable(part);
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
  charge((at - from + part.length) / COMPARED_PER_VISIT);
  return place;
}

/**
 * Splits a string by a part; an empty part splits it into characters.
 * @param max most splits
 * @param charge also charges each piece
 */
export function splitBy(
  text: string,
  part: string,
  max: number,
  charge: Charge,
): readonly string[] {
  const pieces: string[] = [];
  let from = 0;
  while (pieces.length < max) {
    const end = part === '' ? endOfCharacter(text, from) : indexOfPart(text, part, charge, from);
    if (end === -1) break;
    charge(PIECE_COST);
    pieces.push(text.slice(from, end));
    from = end + part.length;
  }
  // There is no piece after the last character.
  if (part !== '' || text !== '') pieces.push(text.slice(from));
  return pieces;
}

/** The end of the character that begins at a position; -1 for the last one. */
function endOfCharacter(text: string, from: number): number {
  const end = from + ((text.codePointAt(from) ?? 0) > 0xffff ? 2 : 1);
  return end < text.length ? end : -1;
}

/** Knuth-Morris-Pratt's failure table: per prefix, its longest proper suffix that is a prefix. */
function failureTable(part: string): Uint32Array {
  const ends = new Uint32Array(part.length);
  for (let at = 1; at < part.length; at += 1) {
    const unit = part.charCodeAt(at);
    let same = ends[at - 1] ?? 0;
    while (same > 0 && part.charCodeAt(same) !== unit) same = ends[same - 1] ?? 0;
    ends[at] = part.charCodeAt(same) === unit ? same + 1 : 0;
  }
  return ends;
}

/** Whether a string has surrogate pairs. */
const hasPairs = (text: string): boolean => /[\uD800-\uDBFF][\uDC00-\uDFFF]/.test(text);

/** The number of characters of a string; surrogate pairs, such as emoji, count once. */
export function characterCount(text: string): number {
  if (!hasPairs(text)) return text.length;
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** The position at which a character begins; the string's end if it has fewer. */
export function characterPosition(text: string, character: number): number {
  if (!hasPairs(text)) return Math.min(character, text.length);
  let at = 0;
  for (let left = character; left > 0 && at < text.length; left -= 1) {
    at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1;
  }
  return at;
}
