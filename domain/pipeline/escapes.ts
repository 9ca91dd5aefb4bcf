/** A text without its escapes, and where in the text with them each place of it was. */
export interface Unescaped {
  readonly text: string;
  /** @param place in `text`, from 0 up to its length */
  placeBefore(place: number): number;
}

/**
 * What stands for a character in JSON or JavaScript, in an address (one of UTF-8, percent-encoded) and in HTML or XML.
 * That a text is one of these can't be told from it; so all are taken for what they would mean there.
 */
const escapes =
  /\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|["'\\/bfnrt])|%(?:[0-7][\da-fA-F]|[c-fC-F][\da-fA-F](?:%[89abAB][\da-fA-F]){1,3})|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|amp|lt|gt|quot|apos);/g;

/** By what follows the backslash, or by the name; quotes and slashes stand for themselves. */
const named: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
};

/** Takes one level of escapes away, as JSON within JSON has two. Null where there are none. */
export function unescape(text: string): Unescaped | null {
  /** Of each escape: the place behind it in what comes out, and how much further that is in the text. */
  const behind: number[] = [];
  const further: number[] = [];
  let shorter = 0;
  const unescaped = text.replace(escapes, (escape, at: number) => {
    const meaning = meaningOf(escape);
    if (meaning === null) return escape;
    behind.push(at - shorter + meaning.length);
    shorter += escape.length - meaning.length;
    further.push(shorter);
    return meaning;
  });
  if (behind.length === 0) return null;
  const placeBefore = (place: number): number => place + (further[lastUpTo(behind, place)] ?? 0);
  return { text: unescaped, placeBefore };
}

/** Null where it stands for no character. */
function meaningOf(escape: string): string | null {
  switch (escape[0]) {
    case '\\':
      return afterBackslash(escape.slice(1));
    case '%':
      return percentDecoded(escape);
    default:
      return entity(escape.slice(1, -1));
  }
}

function afterBackslash(rest: string): string {
  if (rest.length > 1) return String.fromCharCode(Number.parseInt(rest.slice(1), 16));
  return named[rest] ?? rest;
}

function percentDecoded(escape: string): string | null {
  try {
    return decodeURIComponent(escape);
  } catch {
    return null;
  }
}

function entity(name: string): string | null {
  if (!name.startsWith('#')) return named[name] ?? null;
  const isHex = name[1] === 'x' || name[1] === 'X';
  const point = isHex ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1));
  return point > 0x10_ffff ? null : String.fromCodePoint(point);
}

/** Index of the last of these ascending numbers that is not greater; -1 where all are. */
function lastUpTo(numbers: readonly number[], most: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? Infinity) <= most) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
