/** The scope without which an agent can't have tasks of its own making. Whoever loses it has no active tasks. */
export const TASKS_SCOPE = 'tasks:write';

/** Whether an agent has a scope, itself or by `admin`, which implies all. */
export function hasScope(
  { scopes }: { readonly scopes: readonly string[] },
  scope: string,
): boolean {
  return scopes.includes(scope) || scopes.includes('admin');
}
