// Finds quotas that are used up.

import { call, ownNamespace } from '../../client.js';
import { getState } from '../../store.js';

/** The most namespaces that are checked. */
const MAX_NAMESPACES = 20;

/** @returns {Promise<{namespace: string, quota: string, used: number, limit: number}[]>} */
export async function readQuotas(signal) {
  const { namespace, namespaces } = getState();
  const own = namespaces.length === 0 ? [ownNamespace()] : namespaces.slice(0, MAX_NAMESPACES);
  const names = namespace === '' ? own : [namespace];
  const all = await Promise.all(names.map((name) => usageOf(name, signal)));
  return all.flat().filter(({ used, limit }) => limit !== null && used >= limit);
}

async function usageOf(namespace, signal) {
  try {
    const { quotas } = await call('GET', `namespaces/${namespace}/usage`, { signal });
    return quotas.map((each) => ({ ...each, namespace }));
  } catch (error) {
    // The namespace was deleted in the meantime.
    if (error.status === 404) return [];
    throw error;
  }
}
