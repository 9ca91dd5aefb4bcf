import { isUuid } from '../../domain/ids.ts';
import { nameOfAgent } from '../../projections/reading/names.ts';
import type { ApiDependencies } from '../dependencies.ts';

/**
 * The name of an agent, for a record of its action. Everyone who sees the action may see the name. Removed agents keep
 * their last name.
 * @returns null for the service, and if there is no actor
 */
export async function actorName(
  { agents }: Pick<ApiDependencies, 'agents'>,
  id: string | null,
): Promise<string | null> {
  return id !== null && isUuid(id) ? nameOfAgent((await agents.get(id)).state) : null;
}

/** The name of an agent whose id the caller gave; null if it is in another namespace. */
export async function nameIn(
  { agents }: Pick<ApiDependencies, 'agents'>,
  namespace: string,
  id: string,
): Promise<string | null> {
  if (!isUuid(id)) return null;
  const { state } = await agents.get(id.toLowerCase());
  return 'namespace' in state && state.namespace === namespace ? nameOfAgent(state) : null;
}
