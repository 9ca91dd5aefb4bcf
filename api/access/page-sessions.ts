import { toIso } from '../../domain/clock.ts';
import type { RegisteredAgent } from '../../domain/agents/agent.ts';
import { endSession, sessionFold } from '../../domain/agents/session.ts';
import type { Position } from '../../domain/event-store.ts';
import { handle } from '../../domain/handle.ts';
import { streams } from '../../domain/streams.ts';
import type { Call, Caller } from '../endpoint.ts';
import { SESSION_COOKIE, setCookie } from './page-cookie.ts';
import { startSession } from './token-pairs.ts';
import { signToken } from './tokens.ts';

/** A session of the page. */
export interface PageSession {
  /** `Set-Cookie`. */
  readonly cookie: string;
  readonly expiresAt: string;
  readonly position: Position;
}

/**
 * Starts a session of the page. Its cookie holds the only token, which lasts as long as the session. Each sign-in
 * starts a new session, so nobody can plant one in the browser beforehand.
 */
export async function beginPageSession(
  call: Pick<Call, 'dependencies' | 'context' | 'base'>,
  agentId: string,
  agent: RegisteredAgent,
): Promise<PageSession> {
  const { dependencies, context, base } = call;
  const { settings } = dependencies;
  const { pageSessionSeconds: seconds } = settings;
  const expiresAt = toIso(context.now + seconds * 1000);
  const { sid, jti, position } = await startSession(call, agentId, agent, expiresAt);
  const { name } = agent;
  // The token leaves out the scopes, because browsers drop cookies over 4 KiB.
  const claims = { sub: agentId, type: 'page', scope: '', name, sid, jti } as const;
  const token = signToken(claims, seconds, context.now, settings.tokenKeys.jwtKey);
  const cookie = setCookie(SESSION_COOKIE, token, base(), { sameSite: 'Strict', seconds });
  return { cookie, expiresAt, position };
}

/** Ends a session. @returns the position of the event that ended it */
export async function endPageSession(
  { dependencies, context }: Pick<Call, 'dependencies' | 'context'>,
  sid: string,
  { agentId, namespace }: Pick<Caller, 'agentId' | 'namespace'>,
): Promise<Position | null> {
  const { store, sessions } = dependencies;
  const handled = await handle({
    store,
    stream: streams.session(sid),
    fold: sessionFold,
    decide: endSession,
    context: { ...context, namespace, actor: agentId },
  });
  sessions.learn(sid, handled);
  return handled.position;
}

/** The `Set-Cookie` that removes the page's cookie. */
export const noSession = (base: string): string =>
  setCookie(SESSION_COOKIE, '', base, { sameSite: 'Strict', seconds: 0 });
