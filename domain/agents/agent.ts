import { RefusalError } from '../errors.ts';
import type { AgentEvent, AgentNameEvent } from '../events/catalogue.ts';
import type { EventPlace, Fold } from '../handle.ts';
import { hasScope, TASKS_SCOPE } from './scopes.ts';
import { DEFAULT_NAMESPACE, namespaceField, namespaceOf } from '../namespaces/namespace.ts';
import type { DisabledRuns, MisfirePolicy } from '../vocabulary.ts';

/**
 * An agent: an identity that owns tasks, publishes events and authenticates.
 *
 *   none ──AgentRegistered──► registered ──AgentRemoved──► removed
 *   none ──Abandoned──► abandoned      (its name was reserved, but it was never registered)
 *
 * A registered agent is enabled or disabled (AgentDisabled, AgentEnabled).
 */
export type AgentState =
  | { readonly status: 'none' }
  | { readonly status: 'abandoned' }
  | { readonly status: 'removed'; readonly namespace: string; readonly name: string }
  | RegisteredAgent;

export interface RegisteredAgent {
  readonly status: 'registered';
  readonly namespace: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly webhook_url: string | null;
  /** Null without a secret. `revision`: of the event that set it. */
  readonly credentials: { readonly secret_hash: string; readonly revision: number } | null;
  /**
   * The revision of the event that ended all earlier sessions: new credentials, or a disabling; null before the first.
   */
  readonly sessions_revision: number | null;
  /** Null while the agent is enabled. */
  readonly disabled: Disabling | null;
  /** When it was last enabled again; null if it never was. */
  readonly enabled: Enabling | null;
  /** Whether the agent once had the scope `tasks:write` or `admin`, and now has neither. */
  readonly lost_tasks_scope: boolean;
  readonly webhook_secret_version: number;
  readonly created_at: string;
  readonly updated_at: string;
  readonly revision: number;
}

/** While an agent is disabled, nothing may act for it, except runs that may finish. */
export interface Disabling {
  readonly runs: DisabledRuns;
  /** The agent that disabled it. */
  readonly by: string;
  readonly since: string;
}

/** The end of a disabling. */
export interface Enabling {
  readonly at: string;
  /** The policy for fires of the agent's tasks that came due while it was disabled. */
  readonly missed: MisfirePolicy;
}

/** The fields that a client sets. */
export interface AgentFields {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly webhook_url: string | null;
}

export const agentFold: Fold<AgentState, AgentEvent> = {
  initial: { status: 'none' },
  evolve: evolveAgent,
  namespaceOf: (state) => (state.status === 'registered' ? state.namespace : undefined),
};

function evolveAgent(state: AgentState, event: AgentEvent, at: EventPlace): AgentState {
  const { occurredAt } = at.metadata;
  if (event.type === 'AgentRegistered') {
    return {
      status: 'registered',
      ...event.data,
      namespace: namespaceOf(event.data),
      credentials: null,
      sessions_revision: null,
      disabled: null,
      enabled: null,
      lost_tasks_scope: false,
      webhook_secret_version: 0,
      created_at: occurredAt,
      updated_at: occurredAt,
      revision: at.revision,
    };
  }
  if (event.type === 'Abandoned') return { status: 'abandoned' };
  if (state.status !== 'registered') return state;
  const changed = { ...state, updated_at: occurredAt, revision: at.revision };
  switch (event.type) {
    case 'AgentUpdated': {
      const { changes } = event.data;
      const had = state.lost_tasks_scope || hasScope(state, TASKS_SCOPE);
      const updated = { ...changed, ...changes };
      return { ...updated, lost_tasks_scope: had && !hasScope(updated, TASKS_SCOPE) };
    }
    case 'AgentCredentialsSet':
      return {
        ...changed,
        updated_at: state.updated_at,
        credentials: { secret_hash: event.data.secret_hash, revision: at.revision },
        sessions_revision: at.revision,
      };
    case 'WebhookSecretRotated':
      return {
        ...changed,
        updated_at: state.updated_at,
        webhook_secret_version: event.data.version,
      };
    case 'AgentDisabled': {
      const { runs } = event.data;
      const since = state.disabled?.since ?? occurredAt;
      const disabled = { runs, by: at.metadata.actor, since };
      return { ...changed, disabled, sessions_revision: at.revision };
    }
    case 'AgentEnabled':
      return { ...changed, disabled: null, enabled: { at: occurredAt, ...event.data } };
    case 'AgentRemoved':
      return { status: 'removed', namespace: state.namespace, name: state.name };
  }
}

/** Registers an agent and sets its secret, if any, in one append. */
export function registerAgent(
  state: AgentState,
  fields: AgentFields,
  secretHash: string | null,
  namespace = DEFAULT_NAMESPACE,
): readonly AgentEvent[] {
  if (state.status !== 'none') {
    const message = 'the agent already exists, or its registration was abandoned';
    throw new RefusalError('STATE_CONFLICT', message, { status: state.status });
  }
  const registered: AgentEvent = {
    type: 'AgentRegistered',
    data: { ...fields, scopes: [...fields.scopes], ...namespaceField(namespace) },
  };
  return secretHash === null ? [registered] : [registered, credentialsSet(secretHash)];
}

/** Changes the fields that differ. No event if no field differs. */
export function updateAgent(
  state: AgentState,
  changes: Partial<AgentFields>,
): readonly AgentEvent[] {
  const agent = requireAgent(state);
  const differing = Object.entries(changes).filter(
    ([field, value]) =>
      value !== undefined &&
      JSON.stringify(value) !== JSON.stringify(agent[field as keyof AgentFields]),
  );
  if (differing.length === 0) return [];
  return [{ type: 'AgentUpdated', data: { changes: Object.fromEntries(differing) } }];
}

/** Sets a new secret, which ends every session of the old one. */
export function setCredentials(state: AgentState, secretHash: string): readonly AgentEvent[] {
  requireAgent(state);
  return [credentialsSet(secretHash)];
}

/** Moves to the next version of the secret that signs webhook messages. */
export function rotateWebhookSecret(state: AgentState): readonly AgentEvent[] {
  const { webhook_secret_version } = requireAgent(state);
  return [{ type: 'WebhookSecretRotated', data: { version: webhook_secret_version + 1 } }];
}

/** Disables an agent. No event if it is already disabled with the same choice for its runs. */
export function disableAgent(state: AgentState, runs: DisabledRuns): readonly AgentEvent[] {
  const { disabled } = requireAgent(state);
  return disabled?.runs === runs ? [] : [{ type: 'AgentDisabled', data: { runs } }];
}

/**
 * Enables an agent. No event if it is enabled.
 * @param missed the policy for fires that came due while it was disabled
 */
export function enableAgent(state: AgentState, missed: MisfirePolicy): readonly AgentEvent[] {
  const { disabled } = requireAgent(state);
  return disabled === null ? [] : [{ type: 'AgentEnabled', data: { missed } }];
}

export function removeAgent(state: AgentState): readonly AgentEvent[] {
  requireAgent(state);
  return [{ type: 'AgentRemoved', data: {} }];
}

/** @throws RefusalError `NOT_FOUND` for an agent that does not exist, or no longer */
export function requireAgent(state: AgentState): RegisteredAgent {
  if (state.status !== 'registered') throw new RefusalError('NOT_FOUND', 'there is no such agent');
  return state;
}

/** @throws RefusalError `NOT_FOUND`; `FORBIDDEN` for a disabled agent */
export function requireEnabled(state: AgentState): RegisteredAgent {
  const agent = requireAgent(state);
  if (agent.disabled === null) return agent;
  throw new RefusalError('FORBIDDEN', 'the agent is disabled', { disabled: agent.disabled });
}

const credentialsSet = (secretHash: string): AgentEvent => ({
  type: 'AgentCredentialsSet',
  data: { secret_hash: secretHash },
});

/** The agent that holds a name, and the time since which it has held the name. */
export type AgentNameState = {
  readonly agent_id: string;
  readonly since: string;
} | null;

export const agentNameFold: Fold<AgentNameState, AgentNameEvent> = {
  initial: null,
  evolve: (_state, event, at) =>
    event.type === 'NameReserved'
      ? { agent_id: event.data.agent_id, since: at.metadata.occurredAt }
      : null,
};

/**
 * Reserves a name. No event if the agent already has it, except with `anew`, which makes a concurrent release of the
 * name lose the race.
 */
export function reserveName(
  state: AgentNameState,
  name: string,
  agentId: string,
  anew = false,
): readonly AgentNameEvent[] {
  if (state?.agent_id === agentId && !anew) return [];
  if (state !== null && state.agent_id !== agentId) {
    throw new RefusalError('STATE_CONFLICT', `the name ${name} is taken`, { field: 'name', name });
  }
  return [{ type: 'NameReserved', data: { name, agent_id: agentId } }];
}

/** Releases a name. No event if the agent does not have it. */
export function releaseName(
  state: AgentNameState,
  name: string,
  agentId: string,
): readonly AgentNameEvent[] {
  if (state?.agent_id !== agentId) return [];
  return [{ type: 'NameReleased', data: { name, agent_id: agentId } }];
}
