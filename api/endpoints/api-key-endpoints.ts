import {
  apiKeyFold,
  apiKeyId,
  createApiKey,
  revokeApiKey,
  type ApiKeyFields,
} from '../../domain/agents/api-key.ts';
import { hasScope } from '../../domain/agents/scopes.ts';
import { toIso, type Instant } from '../../domain/clock.ts';
import { handle } from '../../domain/handle.ts';

import { streams } from '../../domain/streams.ts';
import {
  apiKeysProjection,
  keysOfAgent,
  type ApiKeyDocument,
} from '../../projections/views/api-keys.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { actorName } from './agent-names.ts';
import { checkAdministers } from '../access/namespace-admins.ts';
import { newApiKey } from '../access/secrets.ts';
import { endpoint, idIn, success, type Call, type Endpoint } from '../endpoint.ts';
import { HttpError, badRequest, notFound } from '../errors.ts';
import { readInstant } from './history/instant.ts';
import { ApiKeyList, ApiKeyRevoked, NewApiKey } from '../schemas/response-schemas-agents.ts';
import { CreateApiKey, ReadQuery } from '../schemas/schemas.ts';
import { reachedAgent, type ReachedAgent } from './agent-reach.ts';

/** The most keys that an agent may have at a time. */
const MAX_KEYS = 100;

const itself = { orItself: true } as const;

const create = endpoint('POST /agents/:agent_id/keys', {
  operationId: 'createApiKey',
  summary: 'Creates an API key for an agent; only this response shows it',
  description:
    'The key is a bearer token for every endpoint. It works without signing in until it expires or is revoked. ' +
    'At each request, it has those of its scopes that the agent still has.',
  scopes: [],
  body: CreateApiKey,
  reads: [apiKeysProjection],
  responses: { 201: NewApiKey },
  responseHeaders: ['Location'],
  refusals: ['forbidden'],
  async handle(call) {
    const { dependencies, context } = call;
    const { store, apiKeys, readModel } = dependencies;
    const reached = await reachedAgent(call, itself);
    const { id: agentId, agent, isCaller } = reached;
    // Otherwise, the key would give its creator scopes that the creator lacks.
    if (!isCaller && call.caller !== null) checkAdministers(call.caller, agent.scopes);
    const fields = await fieldsOf(call, reached, call.body);
    if ((await readModel.count(apiKeysProjection, keysOfAgent(agentId))) >= MAX_KEYS) {
      const message = `an agent may have ${MAX_KEYS} keys; revoke one`;
      throw new HttpError('conflict', message, { agent_id: agentId, limit: MAX_KEYS });
    }
    const key = newApiKey();
    const id = apiKeyId(key);
    const handled = await handle({
      store,
      stream: streams.apiKey(id),
      fold: apiKeyFold,
      decide: (state) => createApiKey(state, key, fields, agent.namespace),
      context,
      isNew: true,
    });
    apiKeys.learn(id, handled);
    const created = {
      created_at: toIso(context.now),
      created_by: context.actor,
      created_by_name: call.caller?.name ?? null,
    };
    const message = 'store the key: it will not be shown again';
    return {
      status: 201,
      body: { id, ...fields, ...created, last_used_at: null, key, message },
      headers: { Location: `/agents/${agentId}/keys` },
      position: handled.position,
    };
  },
});

/** @throws HttpError 400 for scopes that may not be given, and for an expiry in the past or too far in the future */
async function fieldsOf(
  call: Pick<Call, 'caller' | 'dependencies' | 'context'>,
  { id: agent_id, agent, isCaller }: ReachedAgent,
  { name, scopes, expires_at = null }: CreateApiKey,
): Promise<ApiKeyFields> {
  const { caller, context } = call;
  // A caller cannot create a key for its own agent with more rights than its present credential
  // has.
  const available = isCaller && caller !== null ? caller : agent;
  const missing = (scopes ?? []).filter((scope) => !hasScope(available, scope));
  if (missing.length > 0) {
    const whose = available === caller ? 'the caller' : 'the agent';
    const issue = `must be among those of ${whose}, which lacks ${missing.join(', ')}`;
    throw badRequest([{ field: 'scopes', issue }]);
  }
  const expiry = expires_at === null ? Number.POSITIVE_INFINITY : instantOf(expires_at);
  if (expiry <= context.now) {
    throw badRequest([{ field: 'expires_at', issue: 'must be in the future' }]);
  }
  const isByKey = isCaller && caller !== null && caller.keyId !== null;
  const latest = isByKey ? caller.expiresAt : Number.POSITIVE_INFINITY;
  if (expires_at !== null && expiry > latest) {
    const issue = `must not be after ${toIso(latest)}, when the key that creates it expires`;
    throw badRequest([{ field: 'expires_at', issue }]);
  }
  const end = Math.min(expiry, latest);
  const until = Number.isFinite(end) ? toIso(end) : null;
  return { agent_id, name, scopes: scopes ?? available.scopes, expires_at: until };
}

/** @throws HttpError 400 */
function instantOf(text: string): Instant {
  const at = readInstant(text, 'UTC', 'last');
  if (typeof at === 'number') return at;
  throw badRequest([{ field: 'expires_at', issue: at.issue }]);
}

const list = endpoint('GET /agents/:agent_id/keys', {
  operationId: 'listApiKeys',
  summary: "Lists an agent's API keys without the keys themselves, newest first",
  scopes: [],
  query: ReadQuery,
  reads: [apiKeysProjection],
  responses: { 200: ApiKeyList },
  refusals: ['forbidden'],
  async handle(call) {
    const { readModel } = call.dependencies;
    const { id } = await reachedAgent(call, itself);
    const found = await readModel.find(apiKeysProjection, {
      filters: keysOfAgent(id),
      sort: [{ field: 'created_at', direction: 'descending' }],
      limit: 2 * MAX_KEYS,
    });
    const items = await Promise.all(
      found.map(({ document }) => showKey(document, call.dependencies)),
    );
    return { body: { items } };
  },
});

const revoke = endpoint('DELETE /agents/:agent_id/keys/:key_id', {
  operationId: 'revokeApiKey',
  summary: 'Revokes an API key; it stops working within a second',
  scopes: [],
  responses: { 200: ApiKeyRevoked },
  refusals: ['forbidden'],
  async handle(call) {
    const { dependencies, context } = call;
    const { store, apiKeys } = dependencies;
    const { id: agent_id } = await reachedAgent(call, itself);
    const key_id = idIn(call, 'key_id');
    const handled = await handle({
      store,
      stream: streams.apiKey(key_id),
      fold: apiKeyFold,
      admit: (state) => {
        if (state.status === 'none' || state.agent_id !== agent_id) throw notFound('key', key_id);
      },
      decide: revokeApiKey,
      context,
    });
    apiKeys.learn(key_id, handled);
    return success('the key is revoked', { agent_id, key_id }, handled.position);
  },
});

export const apiKeyEndpoints: readonly Endpoint[] = [create, list, revoke];

/** A key as clients see it. Its namespace is left out, because it is the agent's namespace. */
async function showKey(
  { namespace: _namespace, ...shown }: ApiKeyDocument,
  dependencies: Pick<ApiDependencies, 'agents'>,
): Promise<object> {
  return { ...shown, created_by_name: await actorName(dependencies, shown.created_by) };
}
