import type { IncomingMessage } from 'node:http';
import { fromIso } from '../domain/clock.ts';
import type { RegisteredAgent } from '../domain/agent.ts';
import { EventStoreError } from '../domain/event-store.ts';
import type { ApiDependencies } from './dependencies.ts';
import type { Caller } from './endpoint.ts';
import { HttpError, forbidden, unauthorized } from './errors.ts';
import { verifyToken, type Claims } from './tokens.ts';

/** How many tokens' claims are kept, so that a signature is not computed for every request. */
const KEPT = 10_000;

/** Finds out who calls. A token counts for as long as its session is open and its agent is there. */
export class Authentication {
  private readonly dependencies: ApiDependencies;
  /** Verified tokens by their text; whether they have expired is looked at each time. */
  private readonly verified = new Map<string, Claims>();
  /** Who was found to call, so that one request asks once. */
  private readonly callers = new WeakMap<IncomingMessage, Caller>();

  constructor(dependencies: ApiDependencies) {
    this.dependencies = dependencies;
  }

  /**
   * The caller of a request that needs a token.
   * @param scopes any one of them is enough; empty: any valid token
   * @throws HttpError 401, 403
   */
  async authenticate(request: IncomingMessage, scopes: readonly string[]): Promise<Caller> {
    const known = this.callers.get(request);
    const caller = known ?? (await this.identify(request.headers.authorization, scopes));
    if (caller.admin || scopes.length === 0) return caller;
    if (scopes.some((scope) => caller.scopes.includes(scope))) return caller;
    throw forbidden(`this needs the scope ${scopes.join(' or ')}`, scopes, caller.scopes);
  }

  /**
   * The caller, wherever a token that counts came with the request; null where none did, or where that can't be
   * found out now: whoever needs to know asks again, and is told of the fault.
   */
  async callerOf(request: IncomingMessage): Promise<Caller | null> {
    const { authorization } = request.headers;
    if (authorization === undefined) return null;
    try {
      const caller = await this.identify(authorization, []);
      this.callers.set(request, caller);
      return caller;
    } catch (error) {
      if (error instanceof HttpError || error instanceof EventStoreError) return null;
      throw error;
    }
  }

  /** Whether a caller that was let in before would be let in now: by its token, its session and its scopes. */
  async stillCounts(caller: Caller, scopes: readonly string[]): Promise<boolean> {
    const { agentId: sub, sessionId: sid, expiresAt } = caller;
    if (expiresAt <= this.dependencies.clock.now()) return false;
    const agent = await this.agentOf({ sub, sid });
    if (agent === null) return false;
    return ['admin', ...scopes].some((scope) => agent.scopes.includes(scope));
  }

  private async identify(header: string | undefined, scopes: readonly string[]): Promise<Caller> {
    if (header === undefined) throw unauthorized('a bearer token is needed', scopes);
    const token = /^bearer +([^ ]+) *$/i.exec(header)?.[1];
    if (token === undefined) throw unauthorized('Authorization must be Bearer <token>', scopes);
    const claims = this.claimsOf(token);
    if (claims === null) throw unauthorized('the token is not valid, or has expired', scopes);
    const agent = await this.agentOf(claims);
    if (agent === null) throw unauthorized('the token counts no longer', scopes);
    return {
      agentId: claims.sub,
      name: agent.name,
      scopes: agent.scopes,
      admin: agent.scopes.includes('admin'),
      sessionId: claims.sid,
      expiresAt: claims.exp * 1000,
    };
  }

  private claimsOf(token: string): Claims | null {
    const now = this.dependencies.clock.now();
    const kept = this.verified.get(token);
    if (kept) {
      if (kept.exp * 1000 > now) return kept;
      this.verified.delete(token);
      return null;
    }
    const claims = verifyToken(token, 'access', now, this.dependencies.settings);
    if (claims === null) return null;
    this.verified.set(token, claims);
    if (this.verified.size > KEPT) {
      const [oldest] = this.verified.keys();
      if (oldest !== undefined) this.verified.delete(oldest);
    }
    return claims;
  }

  /** The agent as it is now; null when it is gone, or the session is over. */
  private async agentOf(claims: Pick<Claims, 'sub' | 'sid'>): Promise<RegisteredAgent | null> {
    const { agents, sessions } = this.dependencies;
    const agent = (await agents.get(claims.sub)).state;
    const session = (await sessions.get(claims.sid)).state;
    if (agent.status !== 'registered' || session.status !== 'open') return null;
    if (session.agent_id !== claims.sub) return null;
    // A reset of the credentials ends every session that began before it.
    if (session.credentials_revision !== (agent.credentials?.revision ?? null)) return null;
    return fromIso(session.expires_at) > this.dependencies.clock.now() ? agent : null;
  }
}
