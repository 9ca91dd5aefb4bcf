/** Names that all hosts of language models accept. Some reject the whole list of tools for one other name. */
export const EXPOSED_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** Maximum length of an exposed name. Characters. */
const MAX_LENGTH = 64;

/**
 * Gives each tool its exposed name. A valid name stays. In others, invalid characters become `_`, and the name is cut to
 * 64 characters. A duplicate gets a number, such as `http_request_2`. The result depends only on the names and their order.
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
  // Valid names come first, so that a changed name never takes one of them.
  for (const name of registered) if (isFine(name)) exposed.set(name, name);
  for (const name of registered) {
    if (isFine(name)) continue;
    const plain = name.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, MAX_LENGTH) || '_';
    let free = plain;
    for (let number = 2; isTaken(free); number += 1) {
      const suffix = `_${number}`;
      free = plain.slice(0, MAX_LENGTH - suffix.length) + suffix;
    }
    exposed.set(free, name);
  }
  return exposed;
}
