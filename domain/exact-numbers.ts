/**
 * Numbers of JSON that JavaScript cannot represent. `JSON.parse` changes them silently: `7615917337495251231` becomes
 * 7615917337495251000 and `1e400` becomes Infinity.
 *
 * RFC 8259, section 6: only integers from -(2^53 − 1) to 2^53 − 1 mean the same to every reader. An integer is written
 * with digits alone. With a fraction or an exponent a number is a float, which may lose digits but not its size.
 */

/** A number in a JSON text that JavaScript cannot represent. */
export interface LostNumber {
  /** Where it stands, from the outermost value inwards: 64 steps of it, and none behind the first 100 numbers. */
  readonly path: readonly string[];
  /** As it is written. */
  readonly digits: string;
  /** Where it begins in the text, in UTF-16 units; -1 for what JSON cannot write. */
  readonly at: number;
}

/**
 * No number can be lost in a text without a match: 16 digits that are neither a fraction nor the beginning of a string, or
 * an exponent of three digits. A smaller exponent does not overflow with fewer digits.
 */
const SUSPECT = /(?<![.\d"])\d{16}|\d[eE]\+?\d{3}(?=[\d\s,\]}]|$)/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const INTEGER = /^-?\d+$/;

/** Characters of a number that a message shows. */
const MOST_SHOWN = 60;
/** Numbers that warnings name. */
const MOST_WARNED = 10;
/** Numbers whose path is told, and steps of a path: a text may hold very many, nested very deeply. */
const MOST_PATHS = 100;
const MOST_STEPS = 64;

/** Whether a number, as JSON writes it, is one that JavaScript represents (a float up to its last digits). */
export function isRepresentable(digits: string): boolean {
  const number = Number(digits);
  return INTEGER.test(digits) ? Number.isSafeInteger(number) : Number.isFinite(number);
}

/**
 * Finds the numbers that JavaScript cannot represent.
 * @param text valid JSON
 * @returns them in the order of the text. Quick for a text without long numbers
 */
export function lostNumbers(text: string): readonly LostNumber[] {
  return SUSPECT.test(text) ? search(text) : [];
}

/** What is wrong with a lost number, and the remedy. */
export function lostIssue({ digits }: Pick<LostNumber, 'digits'>): string {
  const shown = digits.length > MOST_SHOWN ? `${digits.slice(0, MOST_SHOWN)}…` : digits;
  const rule = INTEGER.test(digits)
    ? 'must be an integer within ±9007199254740991 (2^53 - 1)'
    : 'must be a number within ±1.8e308';
  return `${rule}, got ${shown}; send it as a string`;
}

/**
 * Parses JSON that comes from elsewhere and can't be sent back: a lost number becomes a string of its exact digits.
 * @returns the value, and a warning for each such number (for the first ten, and how many more there are)
 * @throws SyntaxError for what is not JSON
 */
export function parseKeepingDigits(text: string): {
  readonly value: unknown;
  readonly warnings: readonly string[];
} {
  const value: unknown = JSON.parse(text);
  const lost = lostNumbers(text);
  if (lost.length === 0) return { value, warnings: [] };
  let kept = '';
  let from = 0;
  for (const { at, digits } of lost) {
    kept += `${text.slice(from, at)}"${digits}"`;
    from = at + digits.length;
  }
  const warnings = lost.slice(0, MOST_WARNED).map(warningOf);
  const more = lost.length - warnings.length;
  if (more > 0) warnings.push(`${more} more numbers are kept as strings`);
  return { value: JSON.parse(kept + text.slice(from)), warnings };
}

function warningOf({ path, digits }: LostNumber): string {
  const shown = digits.length > MOST_SHOWN ? `${digits.slice(0, MOST_SHOWN)}…` : digits;
  const where = ['body', ...path].join('.');
  return `${where}: kept ${shown} as a string; JavaScript cannot represent this number`;
}

/**
 * Writes a value as JSON, and finds what JSON or its readers would change: NaN and the infinities, which JSON writes as
 * null, and integers beyond 2^53 − 1.
 * @returns `text`: undefined where the value has none (a function, say)
 * @throws TypeError for a cycle or a BigInt, and what a `toJSON` throws
 */
export function stringifyExactly(value: unknown): {
  readonly text: string | undefined;
  readonly lost: readonly LostNumber[];
} {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return { text, lost: [] };
  // Most values hold no null, and a replacer makes it slow.
  const infinite = text.includes('null') ? infiniteIn(value) : [];
  return { text, lost: [...infinite, ...lostNumbers(text)] };
}

/**
 * Writes a value as JSON that can be sent back to the service. `JSON.stringify` writes a float without an exponent below
 * 1e21: `1e20` becomes `100000000000000000000`, which reads as an integer that no reader keeps. It keeps its exponent
 * here.
 * @param indent spaces per level; default: all on one line
 * @throws TypeError for a cycle or a BigInt, and what a `toJSON` throws
 */
export function writeJson(value: unknown, indent?: number): string {
  return withExponents(JSON.stringify(value, null, indent));
}

/**
 * Puts an exponent to the integers of a JSON text that are beyond ±(2^53 − 1).
 * @param text JSON that `JSON.stringify` has written: such an integer is a float there
 * @returns JSON of the same value. Quick for a text without long numbers
 */
export function withExponents(text: string): string {
  let written = '';
  let from = 0;
  for (const { at, digits } of lostNumbers(text)) {
    written += text.slice(from, at) + Number(digits).toExponential();
    from = at + digits.length;
  }
  return from === 0 ? text : written + text.slice(from);
}

/** NaN and infinities, as JSON meets them: behind each `toJSON`. */
function infiniteIn(value: unknown): readonly LostNumber[] {
  const found: LostNumber[] = [];
  // The one that was entered last: an object may stand in several places.
  const paths = new Map<unknown, readonly string[]>();
  let isOutermost = true;
  JSON.stringify(value, function (this: unknown, key: string, member: unknown) {
    const path = isOutermost ? [] : [...(paths.get(this) ?? []), key];
    isOutermost = false;
    if (typeof member === 'number' && !Number.isFinite(member)) {
      found.push({ path, digits: String(member), at: -1 });
    }
    if (typeof member === 'object' && member !== null) paths.set(member, path);
    return member;
  });
  return found;
}

/** An array or object that the search is within. */
interface Frame {
  readonly isObject: boolean;
  /** Of an array: the place of the current item. */
  index: number;
  /** Of an object: the current name, as it is written. */
  name: string;
}

/** Goes through the tokens one by one and keeps the path. Takes no recursion, as the text may be nested deeply. */
function search(text: string): readonly LostNumber[] {
  const lost: LostNumber[] = [];
  const frames: Frame[] = [];
  let isName = false;
  for (let at = 0; at < text.length;) {
    const character = text[at] ?? '';
    const frame = frames.at(-1);
    if (character === '"') {
      const end = endOfString(text, at);
      if (isName && frame !== undefined) frame.name = text.slice(at, end);
      isName = false;
      at = end;
      continue;
    }
    NUMBER.lastIndex = at;
    const digits = isDigitOrMinus(character) ? NUMBER.exec(text)?.[0] : undefined;
    if (digits !== undefined) {
      if (!isRepresentable(digits)) {
        const shown = lost.length < MOST_PATHS ? frames.slice(0, MOST_STEPS) : [];
        lost.push({ path: shown.map(stepOf), digits, at });
      }
      at += digits.length;
      continue;
    }
    if (character === '{' || character === '[') {
      isName = character === '{';
      frames.push({ isObject: isName, index: 0, name: '""' });
    } else if (character === '}' || character === ']') {
      isName = false;
      frames.pop();
    } else if (character === ',' && frame !== undefined) {
      isName = frame.isObject;
      frame.index += 1;
    }
    at += 1;
  }
  return lost;
}

const isDigitOrMinus = (character: string): boolean =>
  character === '-' || (character >= '0' && character <= '9');

const stepOf = ({ isObject, index, name }: Frame): string =>
  isObject ? (JSON.parse(name) as string) : String(index);

/** Behind the closing quote of the string that begins at a place. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at += 1) {
    const end = text.indexOf('"', at);
    if (end === -1) return text.length;
    let backslashes = 0;
    while (text[end - 1 - backslashes] === '\\') backslashes += 1;
    if (backslashes % 2 === 0) return end + 1;
    at = end;
  }
}
