import type { AgentPort } from '../ports.ts';
import { ExtensionError } from '../../contract.ts';
import type { Extension } from '../extension.ts';

/** By extension: the agents that it currently serves, with the number of calls. */
const servedAgents = new WeakMap<Extension, Map<string, number>>();

/** Records that an extension serves an agent: a request, a WebSocket or a step of a run. */
export function beginServing(extension: Extension, agentId: string): void {
  let agents = servedAgents.get(extension);
  if (agents === undefined) servedAgents.set(extension, (agents = new Map()));
  agents.set(agentId, (agents.get(agentId) ?? 0) + 1);
}

/** Records the end of a call; once for each {@link beginServing}. */
export function endServing(extension: Extension, agentId: string): void {
  const agents = servedAgents.get(extension);
  const remaining = (agents?.get(agentId) ?? 1) - 1;
  if (remaining > 0) agents?.set(agentId, remaining);
  else agents?.delete(agentId);
}

/**
 * Checks that an extension acts for its own agent or one that it currently serves, as its capabilities are not an
 * agent's scopes. Built-in extensions are trusted.
 * @throws ExtensionError `forbidden` for any other agent
 */
export async function checkActingAgent(
  extension: Extension,
  agentId: unknown,
  agents: Pick<AgentPort, 'idOf'>,
): Promise<void> {
  if (extension.source === 'builtin') return;
  if (typeof agentId === 'string') {
    if (servedAgents.get(extension)?.has(agentId) === true) return;
    if (agentId === (await agents.idOf(extension))) return;
  }
  throw new ExtensionError(
    'forbidden',
    'an extension may only act as its own agent or for an agent that it serves',
    { extension_id: extension.id },
  );
}
