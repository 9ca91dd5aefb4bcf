import { isRepresentable, lostIssue, lostNumbers } from '../exact-numbers.ts';

/**
 * Expressions calculate with floats, as JavaScript does. Integers stay exact: a result that would only be near the right
 * integer fails the expression, and so does one that overflows or is not a number, which JSON would write as null.
 */

/**
 * @param value what an operator or a function gave
 * @param operands what it was given
 * @throws Error where the value is not finite, or is an integer beyond 2^53 - 1 made of exact integers
 */
export function exact(value: unknown, operands: readonly unknown[]): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  if (!Number.isFinite(value)) throw new Error(`it gives ${value}, which JSON cannot hold`);
  // A float among them makes the result one: that may lose digits.
  if (Number.isInteger(value) && operands.every(Number.isSafeInteger)) throw tooLarge();
  return value;
}

/**
 * Checks the sum of exact integers on the way, where it may leave them and come back.
 * @throws Error as {@link exact}
 */
export function checkSum([list]: readonly unknown[]): undefined {
  if (!Array.isArray(list) || !list.every(Number.isSafeInteger)) return;
  let sum = 0;
  for (const each of list as readonly number[]) {
    sum += each;
    if (!Number.isSafeInteger(sum)) throw tooLarge();
  }
}

/** @throws Error for the JSON literals of an expression (within backticks) that hold numbers JavaScript cannot represent */
export function checkLiteral(quoted: string): void {
  if (!quoted.startsWith('`')) return;
  const text = quoted.slice(1, -1).replaceAll('\\`', '`');
  try {
    JSON.parse(text);
  } catch {
    // Not JSON: the parser takes it for a string, or says what is wrong.
    return;
  }
  const [lost] = lostNumbers(text);
  if (lost !== undefined) throw new Error(`${text.slice(0, 60)}: ${lostIssue(lost)}`);
}

/** A number from a string that is written as JSON writes one. @throws Error where it would become another */
export function numberOf(digits: string): number {
  if (isRepresentable(digits)) return Number(digits);
  throw new Error(`to_number(): ${lostIssue({ digits }).replace('send it as', 'keep it as')}`);
}

const tooLarge = (): Error => new Error('it gives an integer beyond ±9007199254740991 (2^53 - 1)');
