/** The names that clients of language models take: those of large hosts refuse a whole list of tools for another one. */
export const EXPOSED_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Most characters of an exposed name. */
const LONGEST = 64;

/**
 * Gives each tool the name under which clients see it. A name that clients take stays as it is. In any other, each
 * character that they refuse becomes `_`, and the name is cut to 64 characters. A name that is taken gets a number:
 * `http_request_2`. The same names in the same order always give the same result.
 *
 * @param own names of the service's own tools, which keep them
 * @param registered names of the other tools, each once
 * @returns the registered name of each exposed name
 */
export function exposedNames(
  own: readonly string[],
  registered: readonly string[],
): ReadonlyMap<string, string> {
  const exposed = new Map<string, string>();
  const isTaken = (name: string): boolean => exposed.has(name) || own.includes(name);
  const isFine = (name: string): boolean => EXPOSED_NAME.test(name) && !own.includes(name);
  // First, so that no changed name takes the place of one that needs no change.
  for (const name of registered) if (isFine(name)) exposed.set(name, name);
  for (const name of registered) {
    if (isFine(name)) continue;
    const plain = name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, LONGEST) || '_';
    let free = plain;
    for (let number = 2; isTaken(free); number += 1) {
      const suffix = `_${number}`;
      free = plain.slice(0, LONGEST - suffix.length) + suffix;
    }
    exposed.set(free, name);
  }
  return exposed;
}
