import { handle } from '../../domain/handle.ts';
import { endSession, sessionFold } from '../../domain/agents/session.ts';
import { streams } from '../../domain/streams.ts';
import { Revoked, Tokens } from '../schemas/response-schemas-agents.ts';
import { endpoint, success, type Endpoint } from '../endpoint.ts';
import { badRequest } from '../errors.ts';
import { RefreshRequest, RevokeRequest, TokenRequest } from '../schemas/schemas.ts';
import { beginSession, refreshTokens, signIn } from '../access/token-pairs.ts';
import { verifyAnyToken } from '../access/tokens.ts';

const token = endpoint('POST /agents/auth/token', {
  operationId: 'issueToken',
  summary: 'Exchanges an id and a secret for tokens',
  scopes: null,
  body: TokenRequest,
  responses: { 200: Tokens },
  refusals: ['unauthorized'],
  async handle(call) {
    const agentId = call.body.agent_id.toLowerCase();
    const agent = await signIn(call, agentId, call.body.agent_secret);
    return beginSession(call, agentId, agent);
  },
});

const refresh = endpoint('POST /agents/auth/refresh', {
  operationId: 'refreshToken',
  summary: 'Exchanges a refresh token for a new pair; the old one stops working',
  scopes: null,
  body: RefreshRequest,
  responses: { 200: Tokens },
  refusals: ['unauthorized'],
  handle: (call) => refreshTokens(call, call.body.refresh_token),
});

const revoke = endpoint('POST /agents/auth/revoke', {
  operationId: 'revokeToken',
  summary: 'Ends the session of an access or refresh token (RFC 7009)',
  scopes: null,
  body: RevokeRequest,
  responses: { 200: Revoked },
  async handle({ dependencies, body, context }) {
    const given = body.token ?? body.refresh_token;
    if (given === undefined) throw badRequest([{ field: 'token', issue: 'is required' }]);
    const { store, settings, sessions, agents } = dependencies;
    const message = 'the token is no longer valid';
    const claims = verifyAnyToken(given, settings.tokenKeys);
    if (claims === null) return success(message, {});
    const { state: agent } = await agents.get(claims.sub);
    const namespace = 'namespace' in agent ? agent.namespace : undefined;
    const handled = await handle({
      store,
      stream: streams.session(claims.sid),
      fold: sessionFold,
      decide: endSession,
      context: { ...context, actor: claims.sub, namespace },
    });
    sessions.learn(claims.sid, handled);
    return success(message, {}, handled.position);
  },
});

export const authEndpoints: readonly Endpoint[] = [token, refresh, revoke];
