import { createRemoteJWKSet, customFetch as keyFetch, type JWTVerifyGetKey } from 'jose';
import * as oidc from 'openid-client';
import type { Clock, Instant } from '../../domain/clock.ts';
import type { PersonClaims } from '../../domain/agents/claim-rules.ts';
import type { Failures } from '../../observability/telemetry.ts';
import { unavailable, type HttpError } from '../errors.ts';
import type { PeopleSettings } from './people-settings.ts';
import { isUnknownKey, refusalIn } from './provider-errors.ts';

/** How long the provider's metadata is cached. Milliseconds. */
const DESCRIBED_FOR = 3_600_000;

/** After a failure, the provider gets no requests for this many milliseconds. */
const PAUSE = 2000;

/** The time limit of a request to the provider. Seconds. */
const TIMEOUT = 10;

/** The message that reports a failure. */
const UNAVAILABLE = 'could not reach the identity provider';

/** The values that the response must match; see {@link IdentityProvider.begin}. */
export interface SignInProof {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The provider's metadata and its keys. */
interface Described {
  readonly client: oidc.Configuration;
  readonly keys: JWTVerifyGetKey;
  readonly until: Instant;
}

/**
 * The OpenID Connect provider where people sign in. Its addresses are only requested when they are needed, so the
 * service can start without it.
 */
export class IdentityProvider {
  readonly #settings: PeopleSettings;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #failures: Failures;
  readonly #keyCooldown: number;
  #described: Described | null = null;
  #describing: Promise<Described> | null = null;
  #pausedUntil: Instant = 0;

  /** @param keyCooldown milliseconds between two requests for the provider's keys to find an unknown one */
  constructor(
    settings: PeopleSettings,
    clock: Pick<Clock, 'now'>,
    failures: Failures,
    keyCooldown: number,
  ) {
    this.#settings = settings;
    this.#clock = clock;
    this.#failures = failures;
    this.#keyCooldown = keyCooldown;
  }

  /**
   * Begins a sign-in: authorization code with PKCE, `state` and `nonce`.
   * @param redirectUri the address to which the provider sends the browser back
   * @returns the provider's address for the browser, and the values with which the response is checked
   * @throws HttpError 503 while the provider can't be reached
   */
  async begin(redirectUri: string): Promise<{ readonly url: string; readonly proof: SignInProof }> {
    const { client } = await this.#describe();
    const proof = {
      state: oidc.randomState(),
      nonce: oidc.randomNonce(),
      verifier: oidc.randomPKCECodeVerifier(),
    };
    const url = oidc.buildAuthorizationUrl(client, {
      redirect_uri: redirectUri,
      scope: this.#settings.scopes,
      response_type: 'code',
      state: proof.state,
      nonce: proof.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(proof.verifier),
      code_challenge_method: 'S256',
    });
    return { url: url.href, proof };
  }

  /**
   * Exchanges the code of the provider's response for the person's claims. Claims of the ID token take precedence; the
   * UserInfo endpoint adds those that the token lacks.
   * @param address the redirect URI with the response in its query
   * @throws SignInRefusedError for an invalid response or code; HttpError 503 while the provider can't be reached
   */
  async complete(address: URL, proof: SignInProof): Promise<PersonClaims> {
    const { client } = await this.#describe();
    return this.#asking(async () => {
      const tokens = await oidc.authorizationCodeGrant(client, address, {
        pkceCodeVerifier: proof.verifier,
        expectedState: proof.state,
        expectedNonce: proof.nonce,
        idTokenExpected: true,
      });
      const claims: PersonClaims = tokens.claims() ?? {};
      if (client.serverMetadata().userinfo_endpoint === undefined) return claims;
      const more = await oidc.fetchUserInfo(client, tokens.access_token, String(claims['sub']));
      return { ...more, ...claims };
    }, refusalIn);
  }

  /**
   * The provider's keys. They are requested again for an unknown key, at most every 30 seconds.
   * @throws HttpError 503
   */
  async keys(): Promise<JWTVerifyGetKey> {
    const { keys } = await this.#describe();
    const unknown = (error: unknown): Error | null => (isUnknownKey(error) ? error : null);
    return (header, token) => this.#asking(async () => keys(header, token), unknown);
  }

  async #describe(): Promise<Described> {
    const known = this.#described;
    if (known !== null && known.until > this.#clock.now()) return known;
    this.#describing ??= this.#discover().finally(() => (this.#describing = null));
    try {
      return await this.#describing;
    } catch (error) {
      // The metadata are cached, because they rarely change.
      if (known !== null) return known;
      throw error;
    }
  }

  async #discover(): Promise<Described> {
    const { issuer, clientId, clientSecret } = this.#settings;
    return this.#asking(async () => {
      const isPlain = issuer.startsWith('http://');
      const client = await oidc.discovery(
        new URL(issuer),
        clientId,
        undefined,
        authenticationBy(clientSecret),
        {
          timeout: TIMEOUT,
          // Checks signatures. Otherwise, the library would trust ID tokens because they come over
          // TLS.
          execute: [
            oidc.enableNonRepudiationChecks,
            ...(isPlain ? [oidc.allowInsecureRequests] : []),
          ],
        },
      );
      const { jwks_uri, issuer: named } = client.serverMetadata();
      // The issuer is part of a person's identity, and tokens must contain exactly this string.
      if (named !== issuer) throw new Error(`the provider calls itself ${named}`);
      if (jwks_uri === undefined) throw new Error('the provider names no jwks_uri');
      const url = new URL(jwks_uri);
      if (url.protocol !== 'https:' && !isPlain) throw new Error('its jwks_uri is not https');
      const keys = createRemoteJWKSet(url, {
        timeoutDuration: TIMEOUT * 1000,
        cooldownDuration: this.#keyCooldown,
        [keyFetch]: (address, options) => fetch(address, options),
      });
      return { client, keys, until: this.#clock.now() + DESCRIBED_FOR };
    });
  }

  /**
   * Sends requests to the provider. After a failure, the next requests fail at once for a while.
   * @param refusalOf converts an error that does not mean that the provider can't be used; null for all others
   * @throws HttpError 503 if it can't be used
   */
  async #asking<T>(
    ask: () => Promise<T>,
    refusalOf: (error: unknown) => Error | null = () => null,
  ): Promise<T> {
    if (this.#pausedUntil > this.#clock.now()) throw providerUnavailable();
    try {
      const answer = await ask();
      this.#failures.worked(UNAVAILABLE);
      return answer;
    } catch (error) {
      const refusal = refusalOf(error);
      if (refusal !== null) throw refusal;
      this.#pausedUntil = this.#clock.now() + PAUSE;
      this.#failures.failed(UNAVAILABLE, error, { issuer: this.#settings.issuer });
      throw providerUnavailable();
    }
  }
}

/** The provider of the settings; null if there is none. @param keyCooldown see {@link IdentityProvider} */
export function identityProviderOf(
  settings: PeopleSettings | null,
  clock: Pick<Clock, 'now'>,
  failures: Failures,
  keyCooldown = 30_000,
): IdentityProvider | null {
  return settings === null ? null : new IdentityProvider(settings, clock, failures, keyCooldown);
}

/** In the header or the body, depending on the provider's support; OpenID Connect Core, section 9. */
function authenticationBy(secret: string | undefined): oidc.ClientAuth {
  if (secret === undefined) return oidc.None();
  const [basic, post] = [oidc.ClientSecretBasic(secret), oidc.ClientSecretPost(secret)];
  return (server, client, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    const isBasic = methods.includes('client_secret_basic');
    return (isBasic ? basic : post)(server, client, body, headers);
  };
}

const providerUnavailable = (): HttpError =>
  unavailable('identity_provider', 'the identity provider does not respond; try again');
