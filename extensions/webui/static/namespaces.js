// The namespace that an admin looks at. Who has only one never sees that there are namespaces.

import { getState, setState } from './store.js';

/** What the service narrows to a namespace. */
const narrowed =
  /^(agents|agents\/keys|approvals|events|events\/topics|runs|runs\/live|secrets|stats\/(?:errors|summary|tasks)|stream\/recent|tasks|tasks\/due|tasks\/outcomes|tools|topics|webhooks\/resent|workers)$/;

/** The query of a request, narrowed to the chosen namespace. @param path without a slash before it */
export function inNamespace(method, path, query) {
  const { namespace } = getState();
  return method === 'GET' && namespace !== '' && narrowed.test(path)
    ? { namespace, ...query }
    : query;
}

/** Finds out which namespaces there are. @param read reads a path; the page goes on without them if it fails */
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

/** Shows what is in a namespace; `''` for all. */
export const chooseNamespace = (namespace) => setState({ namespace });
