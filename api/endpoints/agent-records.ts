import type { RegisteredAgent } from '../../domain/agents/agent.ts';
import { namespaceField, namespaceOf } from '../../domain/namespaces/namespace.ts';
import type { AgentDocument } from '../../projections/views/agents.ts';

/** An agent as clients see it. */
export function showAgent(id: string, agent: RegisteredAgent | AgentDocument): object {
  const { name, scopes, webhook_url, created_at, updated_at, disabled = null } = agent;
  const namespace = namespaceField(namespaceOf(agent));
  return { id, ...namespace, name, scopes, webhook_url, disabled, created_at, updated_at };
}
