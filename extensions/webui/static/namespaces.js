// The namespace that an admin looks at. A service with a single namespace never shows that there are namespaces.

import { getState, setState } from './store.js';

/** The paths that the service can narrow to a namespace. */
const narrowed =
  /^(agents|agents\/keys|approvals|events|events\/topics|runs|runs\/live|secrets|stats\/(?:errors|summary|tasks)|stream\/recent|tasks|tasks\/due|tasks\/outcomes|tools|topics|webhooks\/resent|workers)$/;

/** Commands for all matching records. They must not reach beyond the shown records. */
const narrowedCommands = /^runs\/(?:cancel|redrive)$/;

/** The query of a request, narrowed to the chosen namespace. @param path without a slash before it */
export function inNamespace(method, path, query) {
  const { namespace } = getState();
  const isNarrowed = (method === 'GET' ? narrowed : narrowedCommands).test(path);
  return namespace !== '' && isNarrowed ? { namespace, ...query } : query;
}

/** Reads the names of the namespaces. @param read reads a path; the page continues without them if it fails */
export async function findNamespaces(read) {
  const names = [];
  for (let cursor; ;) {
    const page = await read('namespaces', { limit: 200, cursor });
    names.push(...page.items.map(({ name }) => name));
    if (page.next_cursor === null) break;
    cursor = page.next_cursor;
  }
  setState({ namespaces: names.length > 1 ? names : [] });
}

/** Narrows the page to a namespace; `''` shows all. */
export const chooseNamespace = (namespace) => setState({ namespace });
