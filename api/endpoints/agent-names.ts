import { isUuid } from '../../domain/ids.ts';
import { nameOfAgent } from '../../projections/reading/names.ts';
import type { ApiDependencies } from '../dependencies.ts';

/**
 * The name of an agent that did something, which everybody may know who sees what it did. Removed ones keep their last
 * name.
 * @returns null for the service, and for nobody
 */
export async function actorName(
  { agents }: Pick<ApiDependencies, 'agents'>,
  id: string | null,
): Promise<string | null> {
  return id !== null && isUuid(id) ? nameOfAgent((await agents.get(id)).state) : null;
}

/** The same of an agent that somebody names: null for one of another namespace. */
export async function nameIn(
  { agents }: Pick<ApiDependencies, 'agents'>,
  namespace: string,
  id: string,
): Promise<string | null> {
  if (!isUuid(id)) return null;
  const { state } = await agents.get(id.toLowerCase());
  return 'namespace' in state && state.namespace === namespace ? nameOfAgent(state) : null;
}
