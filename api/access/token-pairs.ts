import { agentFold, type RegisteredAgent } from '../../domain/agents/agent.ts';
import { isOpenFor, refreshSession, sessionFold } from '../../domain/agents/session.ts';
import { toIso } from '../../domain/clock.ts';
import { RefusalError } from '../../domain/errors.ts';
import type { Position } from '../../domain/event-store.ts';
import type { SessionEvent } from '../../domain/events/catalogue.ts';
import { handle, load, toNewEvents, type CommandContext } from '../../domain/handle.ts';
import { newId } from '../../domain/ids.ts';
import { streams } from '../../domain/streams.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { EndpointResponse, Call } from '../endpoint.ts';
import { DISABLED, unauthorized } from '../errors.ts';
import { agentBySecret } from './agent-secret.ts';
import { limitFailures } from './token-brake.ts';
import { signToken, verifyToken } from './tokens.ts';

type TokenCall = Pick<Call, 'dependencies' | 'context' | 'address'>;

/**
 * Returns the agent if the secret is right; see {@link limitFailures} and {@link agentBySecret}.
 * @param agentId in lower case
 * @throws HttpError 401 for an unknown or disabled agent or a wrong secret, 429
 */
export async function signIn(
  { dependencies, address }: TokenCall,
  agentId: string,
  secret: string | undefined,
): Promise<RegisteredAgent> {
  const agent = await limitFailures(dependencies, { agentId, address }, (network) =>
    agentBySecret(dependencies, agentId, secret, network),
  );
  if (agent === null) throw unauthorized('the agent is unknown, or the secret is wrong');
  // Only callers who know the secret receive this message.
  if (agent.disabled !== null) throw unauthorized(DISABLED);
  return agent;
}

/** Begins a session of an agent. @returns its first pair of tokens */
export async function beginSession(
  call: TokenCall,
  agentId: string,
  agent: RegisteredAgent,
): Promise<EndpointResponse> {
  const { dependencies, context } = call;
  const expiresAt = refreshExpiry(dependencies, context);
  const { sid, jti, position } = await startSession(call, agentId, agent, expiresAt);
  return { body: tokensFor(dependencies, agentId, agent, sid, jti, context), position };
}

/** Starts a session of an agent. @returns its id, and that of its first token other than access tokens */
export async function startSession(
  { dependencies, context }: Pick<TokenCall, 'dependencies' | 'context'>,
  agentId: string,
  agent: RegisteredAgent,
  expiresAt: string,
): Promise<{ readonly sid: string; readonly jti: string; readonly position: Position }> {
  const sid = newId(context.now);
  const jti = newId(context.now);
  const stream = streams.session(sid);
  const started: SessionEvent = {
    type: 'SessionStarted',
    data: {
      agent_id: agentId,
      refresh_id: jti,
      expires_at: expiresAt,
      credentials_revision: agent.sessions_revision,
    },
  };
  const own = { ...context, actor: agentId, namespace: agent.namespace };
  const events = toNewEvents(stream, [started], own);
  const { position } = await dependencies.store.append(stream, events, 'none');
  return { sid, jti, position };
}

/**
 * Exchanges a refresh token for a new pair. A token that was used before ends the session.
 * @param agentId the agent that the token must belong to; undefined: any
 * @throws HttpError 401
 */
export async function refreshTokens(
  { dependencies, context }: TokenCall,
  refreshToken: string,
  agentId?: string,
): Promise<EndpointResponse> {
  const { settings, store, sessions } = dependencies;
  const claims = verifyToken(refreshToken, ['refresh'], context.now, settings.tokenKeys);
  if (claims === null || (agentId !== undefined && claims.sub !== agentId)) {
    throw unauthorized('the refresh token is invalid or has expired');
  }
  const { state: agent } = await load(store, streams.agent(claims.sub), agentFold);
  const stream = streams.session(claims.sid);
  const { state: session } = await load(store, stream, sessionFold);
  if (agent.status !== 'registered' || !isOpenFor(agent, session)) {
    throw unauthorized('the session has ended');
  }
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
    context: { ...context, actor: claims.sub, namespace: agent.namespace },
  }).catch((error: unknown) => {
    if (error instanceof RefusalError) throw unauthorized('the session has ended');
    throw error;
  });
  sessions.learn(claims.sid, handled);
  if (reused) throw unauthorized('the refresh token was used before; the session is ended');
  return {
    body: tokensFor(dependencies, claims.sub, agent, claims.sid, refreshId, context),
    position: handled.position,
  };
}

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
