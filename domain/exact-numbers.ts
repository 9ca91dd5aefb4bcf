/**
 * JSON numbers that JavaScript cannot represent. `JSON.parse` changes them silently: `7615917337495251231` becomes
 * 7615917337495251000 and `1e400` becomes Infinity. By RFC 8259, section 6, only integers within ±(2^53 − 1) mean the
 * same to every reader. A number with a fraction or an exponent is a float: it may lose digits, but not its size.
 */

/** A number in a JSON text that JavaScript cannot represent. */
export interface LostNumber {
  /** The path from the outermost value inwards. It has at most 64 steps, and is empty after the first 100 numbers. */
  readonly path: readonly string[];
  /** The number as written. */
  readonly digits: string;
  /** Index in the text, in UTF-16 units; -1 for a value that JSON cannot write. */
  readonly at: number;
}

/**
 * A text without a match loses no number, because it has neither 16 digits outside fractions and strings nor 3-digit
 * exponents.
 */
const SUSPECT = /(?<![.\d"])\d{16}|\d[eE]\+?\d{3}(?=[\d\s,\]}]|$)/;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const INTEGER = /^-?\d+$/;

const MAX_SHOWN_DIGITS = 60;
const MAX_WARNINGS = 10;
/** Limits the paths, because a text may hold very many numbers, nested very deeply. */
const MAX_PATHS = 100;
const MAX_PATH_STEPS = 64;

/** Whether JavaScript can represent a JSON number (a float up to its last digits). */
export function isRepresentable(digits: string): boolean {
  const number = Number(digits);
  return INTEGER.test(digits) ? Number.isSafeInteger(number) : Number.isFinite(number);
}

/** The numbers of a valid JSON text that JavaScript cannot represent, in order. Fast for a text without long numbers. */
export function lostNumbers(text: string): readonly LostNumber[] {
  return SUSPECT.test(text) ? search(text) : [];
}

/** The fault of a number, and the remedy. */
export function lostIssue({ digits }: Pick<LostNumber, 'digits'>): string {
  const rule = INTEGER.test(digits)
    ? 'must be an integer within ±9007199254740991 (2^53 - 1)'
    : 'must be a number within ±1.8e308';
  return `${rule}, got ${shortened(digits)}; send it as a string`;
}

/**
 * Parses JSON that can't be rejected: a number that JavaScript cannot represent becomes a string of its digits.
 * @returns the value, and a warning for each of the first ten such numbers and the count of the others
 * @throws SyntaxError
 */
export function parseKeepingDigits(text: string): {
  readonly value: unknown;
  readonly warnings: readonly string[];
} {
  const value: unknown = JSON.parse(text);
  const lost = lostNumbers(text);
  if (lost.length === 0) return { value, warnings: [] };
  const kept = rewritten(text, lost, (digits) => `"${digits}"`);
  const warnings = lost.slice(0, MAX_WARNINGS).map(warningOf);
  const more = lost.length - warnings.length;
  if (more > 0) warnings.push(`kept ${more} more numbers as strings`);
  return { value: JSON.parse(kept), warnings };
}

function warningOf({ path, digits }: LostNumber): string {
  const where = ['body', ...path].join('.');
  return `${where}: kept ${shortened(digits)} as a string; JavaScript cannot represent this number`;
}

const shortened = (digits: string): string =>
  digits.length > MAX_SHOWN_DIGITS ? `${digits.slice(0, MAX_SHOWN_DIGITS)}…` : digits;

/**
 * Writes a value as JSON, and finds the numbers that JSON or its readers would change: NaN and the infinities, which
 * become null, and integers beyond 2^53 − 1.
 * @returns `text` is undefined for a value without JSON, such as a function
 * @throws TypeError for a cycle or a BigInt; what a `toJSON` throws
 */
export function stringifyExactly(value: unknown): {
  readonly text: string | undefined;
  readonly lost: readonly LostNumber[];
} {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return { text, lost: [] };
  // A replacer is slow, and most values hold no null.
  const infinite = text.includes('null') ? infiniteIn(value) : [];
  return { text, lost: [...infinite, ...lostNumbers(text)] };
}

/**
 * Writes a value as JSON that the service accepts again. `JSON.stringify` writes the float `1e20` as
 * `100000000000000000000`, an integer that no reader keeps; here it keeps its exponent.
 * @param indent spaces per level; default: one line
 * @throws TypeError for a cycle or a BigInt; what a `toJSON` throws
 */
export function writeJson(value: unknown, indent?: number): string {
  return withExponents(JSON.stringify(value, null, indent));
}

/** Adds an exponent to integers beyond ±(2^53 − 1) in JSON written by `JSON.stringify`, where they are floats. */
export function withExponents(text: string): string {
  return rewritten(text, lostNumbers(text), (digits) => Number(digits).toExponential());
}

/** A text with its lost numbers written in another way. */
function rewritten(
  text: string,
  lost: readonly LostNumber[],
  write: (digits: string) => string,
): string {
  let result = '';
  let from = 0;
  for (const { at, digits } of lost) {
    result += text.slice(from, at) + write(digits);
    from = at + digits.length;
  }
  return result + text.slice(from);
}

/** Finds NaN and infinities in the values that `JSON.stringify` visits, after each `toJSON`. */
function infiniteIn(value: unknown): readonly LostNumber[] {
  const found: LostNumber[] = [];
  // An object may occur in several places. The last path counts.
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

/** An array or object that encloses the current token. */
interface Frame {
  readonly isObject: boolean;
  /** For an array: the index of the current item. */
  index: number;
  /** For an object: the current name, as written. */
  name: string;
}

/** Scans the tokens and keeps the path. Not recursive: the text may be nested deeply. */
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
        const shown = lost.length < MAX_PATHS ? frames.slice(0, MAX_PATH_STEPS) : [];
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

/** The index after the closing quote of the string that begins at `start`. */
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
