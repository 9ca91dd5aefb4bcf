import { fromIso } from '../domain/clock.ts';
import type { RegisteredAgent } from '../domain/agent.ts';
import type { ApiDependencies } from './dependencies.ts';
import type { Caller } from './endpoint.ts';
import { forbidden, unauthorized } from './errors.ts';
import { verifyToken, type Claims } from './tokens.ts';

/** How many tokens' claims are kept, so that a signature is not computed for every request. */
const KEPT = 10_000;

/** Finds out who calls. A token counts for as long as its session is open and its agent is there. */
export class Authentication {
  private readonly dependencies: ApiDependencies;
  /** Verified tokens by their text; whether they have expired is looked at each time. */
  private readonly verified = new Map<string, Claims>();

  constructor(dependencies: ApiDependencies) {
    this.dependencies = dependencies;
  }

  /**
   * The caller of a request that needs a token.
   * @param scopes any one of them is enough; empty: any valid token
   * @throws HttpError 401, 403
   */
  async authenticate(header: string | undefined, scopes: readonly string[]): Promise<Caller> {
    const caller = await this.identify(header, scopes);
    if (caller.admin || scopes.length === 0) return caller;
    if (scopes.some((scope) => caller.scopes.includes(scope))) return caller;
    throw forbidden(`this needs the scope ${scopes.join(' or ')}`, scopes, caller.scopes);
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
  private async agentOf(claims: Claims): Promise<RegisteredAgent | null> {
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
