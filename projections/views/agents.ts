import type { RecordedEvent } from '../../domain/event-store.ts';
import type { Disabling } from '../../domain/agents/agent.ts';
import type { JsonObject } from '../../domain/json.ts';
import { idOf } from '../../domain/streams.ts';
import { within, type Reach } from '../reach.ts';
import type { Filter, Projection } from '../read-model.ts';
import { withinNamespaces } from './namespaced.ts';

/** An agent as the API shows it, and what signing in and webhooks need. It contains neither a secret nor its hash. */
export type AgentDocument = JsonObject & {
  readonly id: string;
  /** Left out in `default`. */
  readonly namespace?: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly webhook_url: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  /** The revision of the last event of `agent-<id>`, which is the agent's ETag. */
  readonly revision: number;
  /** Revision of the event that set the current secret; null for an agent without credentials. */
  readonly credentials_revision: number | null;
  /** 0 before the first webhook secret. */
  readonly webhook_secret_version: number;
  /** null while the agent is enabled. Documents of an older shape lack it. */
  readonly disabled?: (JsonObject & Disabling) | null;
};

/** All registered agents; removed ones are not here. */
export const agentsProjection: Projection<AgentDocument> = {
  name: 'agents',
  schema: 2,
  // Schema 1 cannot be filtered by namespace, and lacks `disabled`.
  readsOlder: [1],
  addedFields: { namespace: 2 },
  streams: ['agent-'],
  fields: { namespace: 'text', name: 'text', scopes: 'text-list', created_at: 'text' },
  indexes: withinNamespaces([['created_at']]),
  sparse: ['namespace'],
  keys: (event) => [idOf(event.stream)],
  evolve: evolveAgentDocument,
};

/** `name_filter` (contains) and `scope_filter` (has) of `GET /agents`; sort by `created_at`, descending. */
export function agentFilters(
  reach: Reach,
  wanted: { readonly name?: string | undefined; readonly scope?: string | undefined },
): readonly Filter[] {
  const filters: Filter[] = [...within(reach)];
  if (wanted.name !== undefined) {
    filters.push({ field: 'name', op: 'contains', value: wanted.name });
  }
  if (wanted.scope !== undefined) {
    filters.push({ field: 'scopes', op: 'has', value: wanted.scope });
  }
  return filters;
}

function evolveAgentDocument(
  agent: AgentDocument | null,
  event: RecordedEvent,
  id: string,
): AgentDocument | null {
  const { occurredAt } = event.metadata;
  if (event.type === 'AgentRegistered') {
    return {
      id,
      ...event.data,
      created_at: occurredAt,
      updated_at: occurredAt,
      revision: event.revision,
      credentials_revision: null,
      webhook_secret_version: 0,
      disabled: null,
    };
  }
  if (agent === null) return null;
  const { revision } = event;
  switch (event.type) {
    case 'AgentUpdated':
      return { ...agent, ...event.data.changes, updated_at: occurredAt, revision };
    case 'AgentCredentialsSet':
      return { ...agent, credentials_revision: revision, revision };
    case 'WebhookSecretRotated':
      return { ...agent, webhook_secret_version: event.data.version, revision };
    case 'AgentDisabled': {
      const since = agent.disabled?.since ?? occurredAt;
      const disabled = { runs: event.data.runs, by: event.metadata.actor, since };
      return { ...agent, disabled, updated_at: occurredAt, revision };
    }
    case 'AgentEnabled':
      return { ...agent, disabled: null, updated_at: occurredAt, revision };
    case 'AgentRemoved':
      return null;
    default:
      return agent;
  }
}
