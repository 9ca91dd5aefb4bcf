import { errors as jose, jwtVerify, type JWTPayload } from 'jose';
import type { RegisteredAgent } from '../../domain/agents/agent.ts';
import { newId } from '../../domain/ids.ts';
import { isJsonObject } from '../../domain/json.ts';
import { effectiveScopes } from '../access/namespace-admins.ts';
import type { ApiDependencies } from '../dependencies.ts';
import type { Caller } from '../endpoint.ts';
import { DISABLED, HttpError, forbidden, unauthorized } from '../errors.ts';
import { admitPerson } from './admit-person.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { PeopleSettings } from './people-settings.ts';
import { identify } from './sign-in-person.ts';
import { SignInRefusedError } from './sign-in-refused-error.ts';

/** Algorithms with a key pair. With `none` or a shared key, anybody who has the public key could forge tokens. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/** How far apart the clocks of the issuer and of this machine may be. Seconds. */
const SKEW = 30;

/** The longest accepted token, and how many tokens are remembered. */
const MAX_LENGTH = 16_384;
const MAX_REMEMBERED = 10_000;

/** The rights that a verified token grants. */
interface Remembered {
  readonly agentId: string;
  readonly namespace: string;
  readonly scopes: readonly string[];
  /** When the token expires, in milliseconds since 1970, without the skew. */
  readonly expiresAt: number;
}

/**
 * Accepts access tokens of the identity provider. A token's claims grant scopes by the same rules as a sign-in, and its
 * person has the same agent.
 */
export class ForeignTokens {
  readonly #dependencies: ApiDependencies;
  readonly #settings: PeopleSettings;
  readonly #provider: Pick<IdentityProvider, 'keys'>;
  /** Verified tokens; a promise while the verification is in progress. */
  readonly #remembered = new Map<string, Promise<Remembered>>();

  constructor(
    dependencies: ApiDependencies,
    settings: PeopleSettings,
    provider: Pick<IdentityProvider, 'keys'>,
  ) {
    this.#dependencies = dependencies;
    this.#settings = settings;
    this.#provider = provider;
  }

  /** Whether a token claims to be from the provider. Nothing is verified. */
  areOf(token: string): boolean {
    if (this.#remembered.has(token)) return true;
    const [, payload = ''] = token.split('.');
    if (token.length > MAX_LENGTH || payload === '') return false;
    try {
      const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString());
      return isJsonObject(claims) && claims['iss'] === this.#settings.issuer;
    } catch {
      return false;
    }
  }

  /**
   * The caller of a request with a token of the provider. It may do what both its claims and its agent allow.
   * @throws HttpError 401 for an invalid token, 403 for one that gives nothing, 503 while its keys can't be read
   */
  async callerOf(token: string, scopes: readonly string[]): Promise<Caller> {
    const { clock, agents } = this.#dependencies;
    const { agentId, namespace, scopes: given, expiresAt } = await this.#recall(token, scopes);
    if (expiresAt + SKEW * 1000 <= clock.now()) {
      this.#remembered.delete(token);
      throw invalid('has expired', scopes);
    }
    const { state } = await agents.get(agentId);
    if (state.status !== 'registered' || state.namespace !== namespace) {
      this.#remembered.delete(token);
      throw unauthorized('the token is no longer valid', scopes);
    }
    if (state.disabled !== null) throw unauthorized(DISABLED, scopes);
    const granted = effectiveScopes(namespace, commonScopes(given, state));
    const admin = granted.includes('admin');
    const { name } = state;
    const ids = { agentId, namespace, sessionId: null, keyId: null };
    return { ...ids, name, scopes: granted, admin, expiresAt };
  }

  #recall(token: string, scopes: readonly string[]): Promise<Remembered> {
    const known = this.#remembered.get(token);
    if (known !== undefined) return known;
    const learning = this.#learn(token, scopes);
    this.#remembered.set(token, learning);
    learning.catch(() => this.#remembered.delete(token));
    if (this.#remembered.size > MAX_REMEMBERED) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    return learning;
  }

  async #learn(token: string, scopes: readonly string[]): Promise<Remembered> {
    const claims = await this.#verify(token, scopes);
    const { sub: subject, iat, exp } = claims;
    if (subject === undefined || iat === undefined || exp === undefined) {
      throw invalid('lacks sub, iat or exp', scopes);
    }
    const verified = { claims, subject, issuedAt: iat * 1000 };
    const person = identify(this.#settings, verified, false);
    if (person === null) throw forbidden('the claims of the token give no scope', scopes, []);
    const now = this.#dependencies.clock.now();
    const commandId = newId(now);
    const source = this.#settings.issuer;
    const context = { commandId, actor: 'service', source, correlationId: commandId, now };
    const { agentId, agent } = await admitPerson({
      dependencies: this.#dependencies,
      person,
      context,
    }).catch((error: unknown) => {
      throw error instanceof SignInRefusedError ? unauthorized(error.message, scopes) : error;
    });
    const { namespace } = agent;
    return { agentId, namespace, scopes: person.grant.scopes, expiresAt: exp * 1000 };
  }

  /** @throws HttpError 401, 503 */
  async #verify(token: string, scopes: readonly string[]): Promise<JWTPayload> {
    const { issuer, audience } = this.#settings;
    if (audience === undefined) {
      throw invalid('is of another issuer, and SVC_OIDC_AUDIENCE is not set', scopes);
    }
    try {
      const { payload } = await jwtVerify(token, await this.#provider.keys(), {
        algorithms,
        issuer,
        audience,
        clockTolerance: SKEW,
        currentDate: new Date(this.#dependencies.clock.now()),
        requiredClaims: ['sub', 'iat', 'exp'],
      });
      // An ID token only tells a client who has signed in. It grants no access.
      if ('nonce' in payload || 'at_hash' in payload) throw invalid('is an ID token', scopes);
      return payload;
    } catch (error) {
      if (error instanceof HttpError || !(error instanceof jose.JOSEError)) throw error;
      throw invalid(`is invalid or has expired (${error.message})`, scopes);
    }
  }
}

const invalid = (problem: string, scopes: readonly string[]): HttpError =>
  unauthorized(`the token ${problem}`, scopes);

/** The scopes that both lists contain; `admin` counts as all. */
function commonScopes(given: readonly string[], { scopes }: RegisteredAgent): readonly string[] {
  if (given.includes('admin')) return scopes;
  if (scopes.includes('admin')) return given;
  return given.filter((each) => scopes.includes(each));
}
