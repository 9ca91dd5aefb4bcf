import type { RunningApi, SignedIn } from '../../support/running-api.ts';

/** All scopes that an agent of a namespace may have. */
export const allScopes = [
  'tasks:read',
  'tasks:write',
  'runs:read',
  'approvals:write',
  'events:read',
  'events:publish',
  'audit:read',
  'namespace:admin',
];

/** A new agent of a namespace, signed in. */
export async function agentIn(
  api: RunningApi,
  namespace: string,
  scopes: readonly string[] = allScopes,
  name = 'reporter',
): Promise<SignedIn> {
  const { client } = api.admin;
  const id = (await client.post('/agents', { name, scopes, namespace })).textAt('id');
  const agent_secret = (await client.post(`/agents/${id}/credentials`, {})).textAt('agent_secret');
  const tokens = await client.post('/agents/auth/token', { agent_id: id, agent_secret });
  return { id, client: client.as(tokens.textAt('access_token')) };
}
