// JSON as people type it into forms, and as it is sent.

/** Strings, and numbers with their parts, as they stand in JSON. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(\.\d+)?([eE][+-]?\d+)?/g;

/** Without 16 digits in a row there is no integer beyond 2^53 - 1. */
const SUSPECT = /\d{16}/;

/**
 * Parses JSON that a person has typed. `JSON.parse` would change some numbers silently; the service, which refuses them
 * otherwise, would never see what was typed.
 * @throws Error for what is not JSON, and for a number that would be sent as another one
 */
export function parseTyped(text) {
  const value = JSON.parse(text);
  for (const [token, fraction, exponent] of text.matchAll(TOKEN)) {
    if (token.startsWith('"')) continue;
    const number = Number(token);
    const isInteger = fraction === undefined && exponent === undefined;
    const isKept = isInteger ? Number.isSafeInteger(number) : Number.isFinite(number);
    if (!isKept)
      throw new Error(`${token} is a number that cannot be kept exactly; write it as a string`);
  }
  return value;
}

/**
 * Writes JSON that the service takes back. `JSON.stringify` writes the float `1e20` as an integer, which no reader
 * keeps; it keeps its exponent here.
 * @param {number} [indent] spaces per level; default: all on one line
 */
export function writeJson(value, indent) {
  const text = JSON.stringify(value, null, indent);
  if (text === undefined || !SUSPECT.test(text)) return text;
  return text.replace(TOKEN, (token, fraction, exponent) => {
    const isInteger = !token.startsWith('"') && fraction === undefined && exponent === undefined;
    return isInteger && !Number.isSafeInteger(Number(token))
      ? Number(token).toExponential()
      : token;
  });
}
