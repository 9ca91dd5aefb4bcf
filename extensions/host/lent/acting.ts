import type { AgentPort } from '../ports.ts';
import { ExtensionError } from '../../contract.ts';
import type { Extension } from '../extension.ts';

/** Agents that an extension serves just now, by how many calls. */
const served = new WeakMap<Extension, Map<string, number>>();

/** Notes that an extension serves an agent: a request or a WebSocket of it, or a step of a run that acts for it. */
export function beginServing(extension: Extension, agentId: string): void {
  let agents = served.get(extension);
  if (agents === undefined) served.set(extension, (agents = new Map()));
  agents.set(agentId, (agents.get(agentId) ?? 0) + 1);
}

/** Notes that what was begun by {@link beginServing} is over; once for each. */
export function endServing(extension: Extension, agentId: string): void {
  const agents = served.get(extension);
  const left = (agents?.get(agentId) ?? 1) - 1;
  if (left > 0) agents?.set(agentId, left);
  else agents?.delete(agentId);
}

/**
 * An extension acts for its own agent, and for whom it serves just now: what it was granted is no agent's scopes.
 * Those of this service are trusted to name whom they serve.
 * @throws ExtensionError `forbidden` for anybody else
 */
export async function checkActing(
  extension: Extension,
  agentId: unknown,
  agents: Pick<AgentPort, 'idOf'>,
): Promise<void> {
  if (extension.source === 'builtin') return;
  if (typeof agentId === 'string') {
    if (served.get(extension)?.has(agentId) === true) return;
    if (agentId === (await agents.idOf(extension))) return;
  }
  throw new ExtensionError(
    'forbidden',
    'an extension acts as its own agent, or for the agent whose call it serves',
    { extension_id: extension.id },
  );
}
