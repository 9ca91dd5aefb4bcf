import {
  apiKeyId,
  isApiKey,
  isValidKey,
  scopesOfKey,
  type ApiKey,
  type ApiKeyState,
} from '../../domain/agents/api-key.ts';
import type { AgentState, RegisteredAgent } from '../../domain/agents/agent.ts';
import { fromIso } from '../../domain/clock.ts';
import { tokenHash } from '../../domain/ids.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Caller } from '../endpoint.ts';
import { DISABLED, unauthorized } from '../errors.ts';
import { effectiveScopes } from './namespace-admins.ts';

/** The API key in an `Authorization` header; null if there is none. */
export function apiKeyIn(header: string | undefined): string | null {
  const token = /^bearer +([^ ]+) *$/i.exec(header ?? '')?.[1];
  return token !== undefined && isApiKey(token) ? token : null;
}

/** Identifies callers by their API keys. A key is valid only while its agent may act. */
export class KeyAuthentication {
  readonly #dependencies: ApiDependencies;

  constructor(dependencies: ApiDependencies) {
    this.#dependencies = dependencies;
  }

  /**
   * @param scopes of the endpoint, for the error
   * @param address of the client, for the record of the key's last use
   * @throws HttpError 401
   */
  async identify(token: string, scopes: readonly string[], address: string): Promise<Caller> {
    const { apiKeys, agents, apiKeyUses, clock } = this.#dependencies;
    const id = apiKeyId(token);
    const { state: key } = await apiKeys.get(id);
    if (!isValidKey(key, clock.now()) || key.key_hash !== tokenHash(token)) {
      throw unauthorized('the API key is unknown, revoked or expired', scopes);
    }
    const { state: agent } = await agents.get(key.agent_id);
    if (agent.status !== 'registered') throw unauthorized('the agent was removed', scopes);
    if (agent.disabled !== null) throw unauthorized(DISABLED, scopes);
    apiKeyUses.note(id, key.agent_id, address);
    return callerOf(id, key, agent);
  }

  /** Whether a key is still valid and has one of the scopes, or `admin`. */
  async stillAdmits(keyId: string, scopes: readonly string[]): Promise<boolean> {
    const { apiKeys, agents, clock } = this.#dependencies;
    const { state: key } = await apiKeys.get(keyId);
    if (!isValidKey(key, clock.now())) return false;
    const agent = enabledAgent((await agents.get(key.agent_id)).state);
    if (agent === null) return false;
    const granted = effectiveScopes(agent.namespace, scopesOfKey(key, agent));
    return ['admin', ...scopes].some((each) => granted.includes(each));
  }

  /** The agent of a key, even if the key is no longer valid; null for an unknown key. */
  async agentOf(token: string): Promise<string | null> {
    const { state } = await this.#dependencies.apiKeys.get(apiKeyId(token));
    return agentIdOf(state);
  }
}

const agentIdOf = (key: ApiKeyState): string | null =>
  key.status === 'none' ? null : key.agent_id;

const enabledAgent = (agent: AgentState): RegisteredAgent | null =>
  agent.status === 'registered' && agent.disabled === null ? agent : null;

function callerOf(keyId: string, key: ApiKey, agent: RegisteredAgent): Caller {
  const scopes = effectiveScopes(agent.namespace, scopesOfKey(key, agent));
  return {
    agentId: key.agent_id,
    namespace: agent.namespace,
    name: agent.name,
    scopes,
    admin: scopes.includes('admin'),
    sessionId: null,
    keyId,
    expiresAt: key.expires_at === null ? Number.POSITIVE_INFINITY : fromIso(key.expires_at),
  };
}
