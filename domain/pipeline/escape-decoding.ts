/** A string without its escapes, with a mapping to positions in the original. */
export interface DecodedString {
  readonly text: string;
  /** The position in the original. @param position in `text`, from 0 to its length */
  originalPosition(position: number): number;
}

/**
 * Escapes of JSON or JavaScript, of URLs (percent-encoded UTF-8), and of HTML or XML. A string does not show its kind
 * of escapes, so all kinds are decoded.
 */
const escapes =
  /\\(?:u[\da-fA-F]{4}|x[\da-fA-F]{2}|["'\\/bfnrt])|%(?:[0-7][\da-fA-F]|[c-fC-F][\da-fA-F](?:%[89abAB][\da-fA-F]){1,3})|&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|amp|lt|gt|quot|apos);/g;

/**
 * The decoded character, by the character after the backslash or the entity name. Other characters decode to
 * themselves.
 */
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

/** Decodes one level of escapes; JSON within JSON has two. Null if there are none. */
export function decodeEscapes(text: string): DecodedString | null {
  /** For each escape, its end in the result, and the offset from there to the original. */
  const ends: number[] = [];
  const offsets: number[] = [];
  let shortened = 0;
  const unescaped = text.replace(escapes, (escape, at: number) => {
    const decoded = decode(escape);
    if (decoded === null) return escape;
    ends.push(at - shortened + decoded.length);
    shortened += escape.length - decoded.length;
    offsets.push(shortened);
    return decoded;
  });
  if (ends.length === 0) return null;
  const originalPosition = (position: number): number =>
    position + (offsets[lastUpTo(ends, position)] ?? 0);
  return { text: unescaped, originalPosition };
}

/** Null if it is not a valid escape. */
function decode(escape: string): string | null {
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

/** The index of the last of these ascending numbers that is ≤ `max`; -1 if none is. */
function lastUpTo(numbers: readonly number[], max: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] ?? Infinity) <= max) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
