import type { AgentPort } from '../ports.ts';
import { ExtensionError } from '../../contract.ts';
import type { Extension } from '../extension.ts';

/** An agent that an extension currently serves. */
interface ServedAgent {
  readonly namespace: string;
  /** Calls that have not ended. */
  calls: number;
}

/** Keyed by extension, then by agent id. */
const servedAgents = new WeakMap<Extension, Map<string, ServedAgent>>();

/** Records that an extension serves a request, a WebSocket or a step of an agent. */
export function beginServing(
  extension: Extension,
  { agentId, namespace }: { readonly agentId: string; readonly namespace: string },
): void {
  let agents = servedAgents.get(extension);
  if (agents === undefined) servedAgents.set(extension, (agents = new Map()));
  const served = agents.get(agentId);
  if (served === undefined) agents.set(agentId, { namespace, calls: 1 });
  else served.calls += 1;
}

/** Records the end of a call; once for each {@link beginServing}. */
export function endServing(extension: Extension, agentId: string): void {
  const agents = servedAgents.get(extension);
  const served = agents?.get(agentId);
  if (served === undefined) return;
  served.calls -= 1;
  if (served.calls === 0) agents?.delete(agentId);
}

/** The namespace of an agent that an extension currently serves; null for any other agent. */
export function servedNamespace(extension: Extension, agentId: string): string | null {
  return servedAgents.get(extension)?.get(agentId)?.namespace ?? null;
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
