import { agentFold, type RegisteredAgent } from '../../domain/agents/agent.ts';
import { toIso } from '../../domain/clock.ts';
import { Refusal } from '../../domain/errors.ts';
import type { SessionEvent } from '../../domain/events/catalogue.ts';
import { handle, load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { endSession, refreshSession, sessionFold } from '../../domain/agents/session.ts';
import { streams } from '../../domain/streams.ts';
import { agentBySecret } from '../access/agent-secret.ts';
import { Revoked, Tokens } from '../schemas/answer-schemas-agents.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { endpoint, type Endpoint } from '../endpoint.ts';
import { badRequest, unauthorized } from '../errors.ts';
import { RefreshRequest, RevokeRequest, TokenRequest } from '../schemas/schemas.ts';
import { braked } from '../access/token-brake.ts';
import { signToken, verifyAnyToken, verifyToken } from '../access/tokens.ts';

const token = endpoint<TokenRequest>({
  method: 'post',
  paths: ['/agents/auth/token'],
  operationId: 'issueToken',
  summary: 'Exchanges an id and a secret for tokens',
  scopes: null,
  body: TokenRequest,
  answers: { 200: Tokens },
  refusals: ['unauthorized'],
  async handle(call) {
    const { dependencies, body, context } = call;
    const agentId = body.agent_id.toLowerCase();
    const agent = await braked(dependencies, { agentId, address: call.address }, (network) =>
      agentBySecret(dependencies, agentId, body.agent_secret, network),
    );
    if (agent === null) throw unauthorized('the agent is unknown, or the secret is wrong');
    const sessionId = newId(context.now);
    const refreshId = newId(context.now);
    const stream = streams.session(sessionId);
    const started: SessionEvent = {
      type: 'SessionStarted',
      data: {
        agent_id: agentId,
        refresh_id: refreshId,
        expires_at: refreshExpiry(dependencies, context),
        credentials_revision: agent.credentials?.revision ?? null,
      },
    };
    const actor = { ...context, actor: agentId };
    const { position } = await dependencies.store.append(
      stream,
      toNewEvents(stream, [started], actor),
      'none',
    );
    return {
      body: tokensFor(dependencies, agentId, agent, sessionId, refreshId, context),
      position,
    };
  },
});

const refresh = endpoint<RefreshRequest>({
  method: 'post',
  paths: ['/agents/auth/refresh'],
  operationId: 'refreshToken',
  summary: 'Exchanges a refresh token for a new pair; the old one is spent',
  scopes: null,
  body: RefreshRequest,
  answers: { 200: Tokens },
  refusals: ['unauthorized'],
  async handle({ dependencies, body, context }) {
    const { settings, store, sessions } = dependencies;
    const claims = verifyToken(body.refresh_token, 'refresh', context.now, settings.tokenKeys);
    if (claims === null) throw unauthorized('the refresh token is not valid, or has expired');
    const { state: agent } = await load(store, streams.agent(claims.sub), agentFold);
    const stream = streams.session(claims.sid);
    const { state: session } = await load(store, stream, sessionFold);
    const counts =
      agent.status === 'registered' &&
      session.status === 'open' &&
      session.credentials_revision === (agent.credentials?.revision ?? null);
    if (!counts) throw unauthorized('the session has ended');
    const refreshId = newId(context.now);
    const next = { refresh_id: refreshId, expires_at: refreshExpiry(dependencies, context) };
    let reused = false;
    const handled = await handle({
      store,
      stream,
      fold: sessionFold,
      decide: (state) => {
        const decision = refreshSession(state, claims.jti, next);
        reused = decision.reused;
        return decision.events;
      },
      context: { ...context, actor: claims.sub },
    }).catch((error: unknown) => {
      if (error instanceof Refusal) throw unauthorized('the session has ended');
      throw error;
    });
    sessions.learn(claims.sid, handled);
    if (reused) throw unauthorized('the refresh token was spent before: the session is ended');
    return {
      body: tokensFor(dependencies, claims.sub, agent, claims.sid, refreshId, context),
      position: handled.position,
    };
  },
});

const revoke = endpoint<RevokeRequest>({
  method: 'post',
  paths: ['/agents/auth/revoke'],
  operationId: 'revokeToken',
  summary: 'Ends the session of a token of either kind (RFC 7009)',
  scopes: null,
  body: RevokeRequest,
  answers: { 200: Revoked },
  async handle({ dependencies, body, context }) {
    const text = body.token ?? body.refresh_token;
    if (text === undefined) throw badRequest([{ field: 'token', issue: 'is required' }]);
    const { store, settings, sessions } = dependencies;
    const done = { success: true, message: 'the token counts no longer', details: {} };
    const claims = verifyAnyToken(text, settings.tokenKeys);
    if (claims === null) return { body: done };
    const handled = await handle({
      store,
      stream: streams.session(claims.sid),
      fold: sessionFold,
      decide: endSession,
      context: { ...context, actor: claims.sub },
    });
    sessions.learn(claims.sid, handled);
    return { body: done, position: handled.position };
  },
});

export const authEndpoints: readonly Endpoint[] = [token, refresh, revoke];

function refreshExpiry({ settings }: ApiDependencies, { now }: CommandContext): string {
  return toIso(now + settings.refreshTokenSeconds * 1000);
}

function tokensFor(
  { settings }: ApiDependencies,
  agentId: string,
  agent: RegisteredAgent,
  sid: string,
  refreshId: string,
  { now }: CommandContext,
): object {
  const scope = agent.scopes.join(' ');
  const common = { sub: agentId, scope, name: agent.name, sid };
  const { accessTokenSeconds, refreshTokenSeconds } = settings;
  const { jwtKey } = settings.tokenKeys;
  const access = { ...common, type: 'access' as const, jti: newId(now) };
  const refreshing = { ...common, type: 'refresh' as const, jti: refreshId };
  return {
    access_token: signToken(access, accessTokenSeconds, now, jwtKey),
    refresh_token: signToken(refreshing, refreshTokenSeconds, now, jwtKey),
    token_type: 'bearer',
    expires_in: accessTokenSeconds,
    scope,
  };
}
