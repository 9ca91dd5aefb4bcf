import { DEFAULT_NAMESPACE } from '../../domain/namespaces/namespace.ts';
import type { Caller } from '../endpoint.ts';
import { badRequest, forbidden } from '../errors.ts';

/** Scope for the administration of the caller's own namespace. */
export const namespaceAdmin = 'namespace:admin';

/**
 * Scopes that concern the whole service. They have no effect outside `default`, and cannot be given to agents there.
 */
const ofService: ReadonlySet<string> = new Set(['ops']);

/** The scopes of an agent that have an effect in its namespace. */
export function effectiveScopes(namespace: string, scopes: readonly string[]): readonly string[] {
  if (namespace === DEFAULT_NAMESPACE || !scopes.some((scope) => ofService.has(scope)))
    return scopes;
  return scopes.filter((scope) => !ofService.has(scope));
}

/**
 * Checks that a caller may give an agent these scopes. An admin may give any scope. Other callers may only give scopes
 * that they have, and never `admin`.
 * @param namespace of the agent
 * @throws HttpError 403; 400 for a scope that has no effect in the namespace
 */
export function checkGrant(caller: Caller, namespace: string, scopes: readonly string[]): void {
  const useless = scopes.find((scope) => ofService.has(scope));
  if (useless !== undefined && namespace !== DEFAULT_NAMESPACE) {
    const issue = `${useless} concerns the whole service; only agents of default can have it`;
    throw badRequest([{ field: 'scopes', issue }]);
  }
  requireScopes(caller, scopes, 'can only be given by an agent that has it');
}

/**
 * Checks that a caller may change an agent. An admin may change any agent. Other callers may only change agents that
 * have no more scopes than they have.
 * @throws HttpError 403
 */
export function checkAdministers(caller: Caller, scopes: readonly string[]): void {
  requireScopes(
    caller,
    scopes,
    'is a scope of this agent, which only an agent that has it may change',
  );
}

/** @throws HttpError 403 */
function requireScopes(caller: Caller, scopes: readonly string[], why: string): void {
  if (caller.admin) return;
  const lacking = scopes.find((scope) => scope === 'admin' || !caller.scopes.includes(scope));
  if (lacking !== undefined) throw forbidden(`${lacking} ${why}`, [lacking], caller.scopes);
}
