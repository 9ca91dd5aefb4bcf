import { agentFold, type RegisteredAgent } from '../../domain/agents/agent.ts';
import { load } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import { reaches } from '../../projections/reach.ts';
import { namespaceAdmin } from '../access/namespace-admins.ts';
import { idIn, type Call } from '../endpoint.ts';
import { forbidden, notFound } from '../errors.ts';

/** The scopes for administering agents: all of them, or those of one namespace. */
export const administrators = ['admin', namespaceAdmin] as const;

/** The agent to which a command applies, read from the log. */
export interface ReachedAgent {
  readonly id: string;
  readonly agent: RegisteredAgent;
  /** Whether the agent is the caller itself. */
  readonly isCaller: boolean;
}

/**
 * The agent in the path, if the caller may stop it. An admin may stop any agent. With `namespace:admin`, a caller may
 * stop the agents of its own namespace that are not admins.
 * @param options.orItself whether the caller may stop itself regardless of its scopes
 * @throws HttpError 404 if the caller cannot see it, 403 if it may not stop it
 */
export async function reachedAgent(
  call: Pick<Call, 'dependencies' | 'parameters' | 'caller' | 'reach'>,
  options: { readonly orItself?: boolean } = {},
): Promise<ReachedAgent> {
  const { caller, dependencies, reach } = call;
  const id = idIn(call, 'agent_id');
  const { state: agent } = await load(dependencies.store, streams.agent(id), agentFold);
  const isCaller = id === caller?.agentId;
  if (agent.status !== 'registered' || !(isCaller || reaches(reach, agent.namespace))) {
    throw notFound('agent', id);
  }
  const mayStop =
    caller?.admin === true ||
    (options.orItself === true && isCaller) ||
    (caller?.scopes.includes(namespaceAdmin) === true && !agent.scopes.includes('admin'));
  if (mayStop) return { id, agent, isCaller };
  const isAdmin = agent.scopes.includes('admin');
  const message = isAdmin ? 'only an admin may do this to an admin' : 'this is another agent';
  const sufficient = isAdmin ? ['admin'] : administrators;
  throw forbidden(message, sufficient, caller?.scopes ?? []);
}
