// Reads the JSON that is typed into forms.

/** Strings, and numbers with their parts, as they stand in JSON. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d+(\.\d+)?([eE][+-]?\d+)?/g;

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
    const isKept = isInteger
      ? Number.isSafeInteger(number) || String(number) === token
      : Number.isFinite(number);
    if (!isKept)
      throw new Error(`${token} is a number that cannot be kept exactly; write it as a string`);
  }
  return value;
}
