import type { IncomingMessage } from 'node:http';
import { fromIso } from '../../domain/clock.ts';
import type { AgentState, RegisteredAgent } from '../../domain/agents/agent.ts';
import { isOpenFor, type SessionState } from '../../domain/agents/session.ts';
import { EventStoreError } from '../../domain/event-store.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Caller } from '../endpoint.ts';
import { DISABLED, HttpError, forbidden, unauthorized } from '../errors.ts';
import { apiKeyIn, KeyAuthentication } from './key-authentication.ts';
import { effectiveScopes } from './namespace-admins.ts';
import type { ForeignTokens } from '../people/foreign-tokens.ts';
import { noteAuthenticated } from '../serving/client-connections.ts';
import { verifyToken, type Claims, type TokenKeys } from './tokens.ts';

/** Verified tokens that are remembered, so that not every request computes a signature. */
const MAX_VERIFIED = 10_000;

/** Identifies callers. A token is valid as long as its session is open and its agent exists and is enabled. */
export class Authentication {
  readonly #dependencies: ApiDependencies;
  readonly #foreign: ForeignTokens | null;
  readonly #byKey: KeyAuthentication;
  /** Verified tokens by `Authorization` header. Their expiry is checked each time. */
  readonly #verified = new Map<string, Claims>();
  /** Callers that the rate limit identified. {@link authenticate} takes them, so each request is identified once. */
  readonly #identified = new WeakMap<IncomingMessage, Caller>();
  /** The keys with which the remembered tokens were verified. */
  #keys: TokenKeys;

  /** @param foreign accepts tokens of the identity provider; null: they are not accepted */
  constructor(dependencies: ApiDependencies, foreign: ForeignTokens | null) {
    this.#dependencies = dependencies;
    this.#foreign = foreign;
    this.#byKey = new KeyAuthentication(dependencies);
    this.#keys = { ...dependencies.settings.tokenKeys };
  }

  /**
   * The caller of a request that needs a token.
   * @param scopes any one suffices; empty: any valid token
   * @param acceptsOwn whether their `:own` variants also suffice. Default: no
   * @throws HttpError 401, 403
   */
  authenticate(
    request: IncomingMessage,
    scopes: readonly string[],
    acceptsOwn = false,
  ): Promise<Caller> | Caller {
    const known = this.#identified.get(request);
    if (known === undefined) {
      const identifying = this.#identify(request, scopes);
      return identifying.then((caller) => {
        noteAuthenticated(request.socket);
        return admitted(caller, scopes, acceptsOwn);
      });
    }
    // Taken only once, because a long response authenticates again and then needs the present
    // state.
    this.#identified.delete(request);
    return admitted(known, scopes, acceptsOwn);
  }

  /**
   * The caller; null without a valid token, or if the token cannot be checked now. {@link authenticate} reports the
   * reason.
   */
  async callerOf(request: IncomingMessage): Promise<Caller | null> {
    if (request.headers.authorization === undefined) return null;
    try {
      const caller = await this.#identify(request, []);
      this.#identified.set(request, caller);
      noteAuthenticated(request.socket);
      return caller;
    } catch (error) {
      if (error instanceof HttpError || error instanceof EventStoreError) return null;
      throw error;
    }
  }

  /** Whether a caller would still be admitted, by its token, its session and its scopes. */
  async stillAdmits(caller: Caller, scopes: readonly string[]): Promise<boolean> {
    const { agentId, sessionId, keyId, expiresAt } = caller;
    if (keyId !== null) return this.#byKey.stillAdmits(keyId, scopes);
    if (expiresAt <= this.#dependencies.clock.now()) return false;
    const { agents, sessions } = this.#dependencies;
    const [agent, session] = await Promise.all([
      agents.get(agentId),
      sessionId === null ? null : sessions.get(sessionId),
    ]);
    const found =
      session !== null
        ? this.#agentOfSession(agentId, agent.state, session.state)
        : agent.state.status === 'registered' && agent.state.disabled === null
          ? agent.state
          : null;
    if (found === null) return false;
    const granted = effectiveScopes(found.namespace, found.scopes);
    return ['admin', ...scopes].some((each) => granted.includes(each));
  }

  async #identify(request: IncomingMessage, scopes: readonly string[]): Promise<Caller> {
    const header = request.headers.authorization;
    const key = apiKeyIn(header);
    if (key !== null) return this.#byKey.identify(key, scopes, addressOf(request));
    if (header === undefined) throw unauthorized('a bearer token is required', scopes);
    this.#forgetTokensOfReplacedKeys();
    const verified = this.#verified.get(header);
    if (verified === undefined && this.#foreign !== null) {
      const token = bearerIn(header);
      if (token !== undefined && this.#foreign.areOf(token)) {
        return this.#foreign.callerOf(token, scopes);
      }
    }
    const { sub, sid, exp } = verified ?? this.#verify(header, scopes);
    const { clock, agents, sessions } = this.#dependencies;
    if (exp * 1000 <= clock.now()) {
      this.#verified.delete(header);
      throw unauthorized('the token is invalid or has expired', scopes);
    }
    // Awaited only if necessary: both are usually in memory, and this code executes twice for each
    // request.
    const [known, open] = [agents.get(sub), sessions.get(sid)];
    const [agent, session] =
      known instanceof Promise || open instanceof Promise
        ? await Promise.all([known, open])
        : [known, open];
    const found = this.#agentOfSession(sub, agent.state, session.state);
    if (found === null) {
      const isDisabled = agent.state.status === 'registered' && agent.state.disabled !== null;
      throw unauthorized(isDisabled ? DISABLED : 'the token is no longer valid', scopes);
    }
    const { namespace, name } = found;
    const granted = effectiveScopes(namespace, found.scopes);
    const admin = granted.includes('admin');
    const token = { sessionId: sid, keyId: null, expiresAt: exp * 1000 };
    return { agentId: sub, namespace, name, scopes: granted, admin, ...token };
  }

  #forgetTokensOfReplacedKeys(): void {
    const { jwtKey, previousJwtKey } = this.#dependencies.settings.tokenKeys;
    if (this.#keys.jwtKey === jwtKey && this.#keys.previousJwtKey === previousJwtKey) return;
    this.#keys = { jwtKey, previousJwtKey };
    this.#verified.clear();
  }

  /** @throws HttpError 401 */
  #verify(header: string, scopes: readonly string[]): Claims {
    const token = bearerIn(header);
    if (token === undefined) throw unauthorized('Authorization must be Bearer <token>', scopes);
    const { clock, settings } = this.#dependencies;
    const claims = verifyToken(token, ['access', 'page'], clock.now(), settings.tokenKeys);
    if (claims === null) throw unauthorized('the token is invalid or has expired', scopes);
    // Other spellings are not remembered, or one token could fill the memory.
    if (header.length !== 'Bearer '.length + token.length) return claims;
    this.#verified.set(header, claims);
    if (this.#verified.size > MAX_VERIFIED) {
      const [oldest] = this.#verified.keys();
      if (oldest !== undefined) this.#verified.delete(oldest);
    }
    return claims;
  }

  /** The agent; null if it was removed or is disabled, or if its session has ended. */
  #agentOfSession(sub: string, agent: AgentState, session: SessionState): RegisteredAgent | null {
    if (agent.status !== 'registered' || !isOpenFor(agent, session)) return null;
    if (session.agent_id !== sub) return null;
    return fromIso(session.expires_at) > this.#dependencies.clock.now() ? agent : null;
  }
}

/** The token of an `Authorization` header; undefined for another scheme. */
const bearerIn = (header: string): string | undefined => /^bearer +([^ ]+) *$/i.exec(header)?.[1];

/** The address of the client, which Express finds behind trusted proxies. */
function addressOf(request: IncomingMessage & { readonly ip?: string | undefined }): string {
  return request.ip ?? request.socket.remoteAddress ?? '';
}

/** @throws HttpError 403 */
function admitted(caller: Caller, scopes: readonly string[], acceptsOwn: boolean): Caller {
  if (caller.admin || scopes.length === 0) return caller;
  const has = (scope: string): boolean => caller.scopes.includes(scope);
  if (scopes.some((scope) => has(scope) || (acceptsOwn && has(`${scope}:own`)))) return caller;
  throw forbidden(`this needs the scope ${scopes.join(' or ')}`, scopes, caller.scopes);
}
