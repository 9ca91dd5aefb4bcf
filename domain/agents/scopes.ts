/** The scope that an agent needs to create tasks. An agent that loses it can have no active tasks. */
export const TASKS_SCOPE = 'tasks:write';

/** Whether an agent has a scope, directly or through `admin`, which implies all. */
export function hasScope(
  { scopes }: { readonly scopes: readonly string[] },
  scope: string,
): boolean {
  return scopes.includes(scope) || scopes.includes('admin');
}
