import type { IncomingMessage } from 'node:http';
import { fromIso, type Instant } from '../../domain/clock.ts';
import type { AgentState, RegisteredAgent } from '../../domain/agents/agent.ts';
import type { Loaded } from '../../domain/handle.ts';
import type { SessionState } from '../../domain/agents/session.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Caller } from '../endpoint.ts';
import { HttpError, forbidden, unauthorized } from '../errors.ts';
import { verifyToken, type Claims, type TokenKeys } from './tokens.ts';

/** How many tokens' claims are kept, so that a signature is not computed for every request. */
const KEPT = 10_000;

/** A token whose signature is right, and who was found to call by it. */
interface Verified {
  readonly claims: Claims;
  found:
    | {
        /** As they were: any change makes others of them. */
        readonly agent: Loaded<AgentState>;
        readonly session: Loaded<SessionState>;
        /** When the session ends by itself. */
        readonly until: Instant;
        readonly caller: Caller;
      }
    | undefined;
}

/** Finds out who calls. A token counts for as long as its session is open and its agent is there. */
export class Authentication {
  private readonly dependencies: ApiDependencies;
  /** Verified tokens by the header that brought them; whether they have expired is looked at each time. */
  private readonly verified = new Map<string, Verified>();
  /** Who was found to call, so that one request asks once. */
  private readonly callers = new WeakMap<IncomingMessage, Caller>();

  /** The keys that the kept tokens were verified with. */
  private keys: TokenKeys;

  constructor(dependencies: ApiDependencies) {
    this.dependencies = dependencies;
    this.keys = { ...dependencies.settings.tokenKeys };
  }

  /**
   * The caller of a request that needs a token.
   * @param scopes any one of them is enough; empty: any valid token
   * @throws HttpError 401, 403
   */
  authenticate(request: IncomingMessage, scopes: readonly string[]): Promise<Caller> | Caller {
    const known = this.callers.get(request);
    // Once: who asks again, of an answer that goes on, is to hear how it is by now.
    this.callers.delete(request);
    const caller = known ?? this.identify(request.headers.authorization, scopes);
    return caller instanceof Promise
      ? caller.then((found) => admitted(found, scopes))
      : admitted(caller, scopes);
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
    const { agents, sessions } = this.dependencies;
    const [agent, session] = await Promise.all([agents.get(sub), sessions.get(sid)]);
    const state = this.counting(sub, agent.state, session.state);
    if (state === null) return false;
    return ['admin', ...scopes].some((scope) => state.agent.scopes.includes(scope));
  }

  private identify(
    header: string | undefined,
    scopes: readonly string[],
  ): Promise<Caller> | Caller {
    if (header === undefined) throw unauthorized('a bearer token is needed', scopes);
    this.forgetTokensOfReplacedKeys();
    const kept = this.verified.get(header) ?? this.verify(header, scopes);
    const { claims } = kept;
    if (claims.exp * 1000 <= this.dependencies.clock.now()) {
      this.verified.delete(header);
      throw unauthorized('the token is not valid, or has expired', scopes);
    }
    const { agents, sessions } = this.dependencies;
    const agent = agents.get(claims.sub);
    const session = sessions.get(claims.sid);
    return agent instanceof Promise || session instanceof Promise
      ? Promise.all([agent, session]).then((both) => this.callerOfToken(kept, ...both, scopes))
      : this.callerOfToken(kept, agent, session, scopes);
  }

  /** The caller by a token; the one that was found before, where agent and session are still as they were. */
  private callerOfToken(
    kept: Verified,
    agent: Loaded<AgentState>,
    session: Loaded<SessionState>,
    scopes: readonly string[],
  ): Caller {
    const { claims, found } = kept;
    if (found?.agent === agent && found.session === session) {
      if (found.until > this.dependencies.clock.now()) return found.caller;
    }
    const { sub, sid, exp } = claims;
    const state = this.counting(sub, agent.state, session.state);
    if (state === null) throw unauthorized('the token counts no longer', scopes);
    const caller: Caller = {
      agentId: sub,
      name: state.agent.name,
      scopes: state.agent.scopes,
      admin: state.agent.scopes.includes('admin'),
      sessionId: sid,
      expiresAt: exp * 1000,
    };
    kept.found = { agent, session, until: state.until, caller };
    return caller;
  }

  /** A token that was verified with a key which is no longer in use must be verified again. */
  private forgetTokensOfReplacedKeys(): void {
    const { jwtKey, previousJwtKey } = this.dependencies.settings.tokenKeys;
    if (this.keys.jwtKey === jwtKey && this.keys.previousJwtKey === previousJwtKey) return;
    this.keys = { jwtKey, previousJwtKey };
    this.verified.clear();
  }

  /** @throws HttpError 401 */
  private verify(header: string, scopes: readonly string[]): Verified {
    const token = /^bearer +([^ ]+) *$/i.exec(header)?.[1];
    if (token === undefined) throw unauthorized('Authorization must be Bearer <token>', scopes);
    const now = this.dependencies.clock.now();
    const claims = verifyToken(token, 'access', now, this.dependencies.settings.tokenKeys);
    if (claims === null) throw unauthorized('the token is not valid, or has expired', scopes);
    const verified: Verified = { claims, found: undefined };
    // Another writing of the same is looked at each time, or one token could fill the memory.
    if (header.length !== 'Bearer '.length + token.length) return verified;
    this.verified.set(header, verified);
    if (this.verified.size > KEPT) {
      const [oldest] = this.verified.keys();
      if (oldest !== undefined) this.verified.delete(oldest);
    }
    return verified;
  }

  /** The agent as it is now, and until when its session lasts; null when it is gone, or the session is over. */
  private counting(
    sub: string,
    agent: AgentState,
    session: SessionState,
  ): { readonly agent: RegisteredAgent; readonly until: Instant } | null {
    if (agent.status !== 'registered' || session.status !== 'open') return null;
    if (session.agent_id !== sub) return null;
    // A reset of the credentials ends every session that began before it.
    if (session.credentials_revision !== (agent.credentials?.revision ?? null)) return null;
    const until = fromIso(session.expires_at);
    return until > this.dependencies.clock.now() ? { agent, until } : null;
  }
}

/** @throws HttpError 403 */
function admitted(caller: Caller, scopes: readonly string[]): Caller {
  if (caller.admin || scopes.length === 0) return caller;
  if (scopes.some((scope) => caller.scopes.includes(scope))) return caller;
  throw forbidden(`this needs the scope ${scopes.join(' or ')}`, scopes, caller.scopes);
}
