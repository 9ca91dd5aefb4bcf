import { isRepresentable, lostIssue, lostNumbers } from '../exact-numbers.ts';

/**
 * Expressions calculate with floats, as JavaScript does, but integers stay exact. An integer result that would be
 * rounded fails the expression. A result that overflows or is not a number, which JSON would write as null, also fails
 * it.
 */

/**
 * Checks the result of an operator or function.
 * @param operands its operands
 * @throws Error if the result is not finite, or is an integer beyond 2^53 - 1 made of exact
 *   integers
 */
export function requireExact(value: unknown, operands: readonly unknown[]): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  if (!Number.isFinite(value))
    throw new Error(`the result is ${value}, which JSON cannot represent`);
  // With a float operand the result is a float, which may be rounded.
  if (Number.isInteger(value) && operands.every(Number.isSafeInteger)) throw tooLarge();
  return value;
}

/**
 * Checks that a sum of exact integers stays exact at every addition.
 * @throws Error as {@link requireExact}
 */
export function checkSum([list]: readonly unknown[]): undefined {
  if (!Array.isArray(list) || !list.every(Number.isSafeInteger)) return;
  let sum = 0;
  for (const each of list as readonly number[]) {
    sum += each;
    if (!Number.isSafeInteger(sum)) throw tooLarge();
  }
}

/**
 * Checks the JSON literals (in backticks) of an expression.
 * @throws Error for a number that JavaScript cannot represent
 */
export function checkLiteral(quoted: string): void {
  if (!quoted.startsWith('`')) return;
  const text = quoted.slice(1, -1).replaceAll('\\`', '`');
  try {
    JSON.parse(text);
  } catch {
    // Not JSON: the parser treats it as a string or reports the error.
    return;
  }
  const [lost] = lostNumbers(text);
  if (lost !== undefined) throw new Error(`${text.slice(0, 60)}: ${lostIssue(lost)}`);
}

/** Parses a JSON number. @throws Error if JavaScript cannot represent it */
export function parseNumber(digits: string): number {
  if (isRepresentable(digits)) return Number(digits);
  throw new Error(`to_number(): ${lostIssue({ digits }).replace('send it as', 'keep it as')}`);
}

const tooLarge = (): Error =>
  new Error('the result is an integer beyond ±9007199254740991 (2^53 - 1)');
