// JSON as people type it, and as it is sent.

/** Strings, and numbers with their parts. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(\.\d+)?([eE][+-]?\d+)?/g;

/** An integer beyond 2^53 - 1 has at least 16 digits. */
const LONG_NUMBER = /\d{16}/;

/**
 * Parses JSON that a person has typed.
 * @throws Error for invalid JSON, and for a number that `JSON.parse` would change silently
 */
export function parseTyped(text) {
  const value = JSON.parse(text);
  for (const [token, fraction, exponent] of text.matchAll(TOKEN)) {
    if (token.startsWith('"')) continue;
    const number = Number(token);
    const isInteger = fraction === undefined && exponent === undefined;
    if (isInteger ? !Number.isSafeInteger(number) : !Number.isFinite(number))
      throw new Error(`${token} is a number that cannot be kept exactly; write it as a string`);
  }
  return value;
}

/**
 * Writes JSON that the service accepts. `JSON.stringify` would write the float `1e20` as an integer, which the service
 * rejects; here it keeps its exponent.
 * @param {number} [indent] spaces per level; default: all on one line
 */
export function writeJson(value, indent) {
  const text = JSON.stringify(value, null, indent);
  if (text === undefined || !LONG_NUMBER.test(text)) return text;
  return text.replace(TOKEN, (token, fraction, exponent) => {
    const isInteger = !token.startsWith('"') && fraction === undefined && exponent === undefined;
    return isInteger && !Number.isSafeInteger(Number(token))
      ? Number(token).toExponential()
      : token;
  });
}
