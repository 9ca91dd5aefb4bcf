import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT, exportJWK, generateKeyPair, type CryptoKey, type JWK } from 'jose';
import Provider from 'oidc-provider';
import type { PeopleSettings } from '../../api/people/people-settings.ts';
import type { PersonClaims } from '../../domain/agents/claim-rules.ts';

/** The API for which the provider makes access tokens. */
export const AUDIENCE = 'urn:tasks';

const CLIENT = 'scheduler';
const SECRET = 'a secret of the client that is long enough';

/** A key pair of the provider. */
interface Key {
  readonly kid: string;
  readonly jwk: JWK;
  readonly privateKey: CryptoKey;
  readonly publicKey: CryptoKey;
}

/** An OpenID provider on the loopback interface, with a form that only asks for a name. */
export class TestIdentityProvider {
  readonly issuer: string;
  /** What the provider knows about people, by `sub`. */
  readonly people = new Map<string, PersonClaims>();
  /** Paths of the requests so far. */
  readonly requests: string[] = [];
  /** While it is set, every request gets this status. */
  failing: number | null = null;
  readonly #server: Server;
  #provider: Provider | null = null;
  #key: Key | undefined;

  private constructor(server: Server) {
    this.#server = server;
    this.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(): Promise<TestIdentityProvider> {
    let provider: TestIdentityProvider | null = null;
    const server = createServer((request, response) => {
      void provider?.answer(request, response);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    provider = new TestIdentityProvider(server);
    return provider;
  }

  /** The settings of a service that signs people in here. */
  settings(given: Partial<PeopleSettings> = {}): PeopleSettings {
    return {
      issuer: this.issuer,
      clientId: CLIENT,
      clientSecret: SECRET,
      scopes: 'openid profile email',
      rules: [
        { claim: ['groups'], is: 'operators', scopes: ['tasks:read', 'runs:read', 'ops'] },
        { claim: ['groups'], is: 'authors', scopes: ['tasks:read', 'tasks:write'] },
        { claim: ['groups'], is: 'admins', scopes: ['admin'] },
        { claim: ['groups'], is: 'billing', scopes: ['tasks:read'], namespace: 'billing' },
        { claim: ['groups'], is: 'nobody', scopes: ['tasks:read'], namespace: 'nowhere' },
      ],
      audience: AUDIENCE,
      ...given,
    };
  }

  /** The same settings as environment variables. */
  environment(): Readonly<Record<string, string>> {
    const { issuer, clientId, clientSecret = '', rules, audience = '' } = this.settings();
    return {
      SVC_OIDC_ISSUER: issuer,
      SVC_OIDC_CLIENT_ID: clientId,
      SVC_OIDC_CLIENT_SECRET: clientSecret,
      SVC_OIDC_CLAIMS: JSON.stringify(rules),
      SVC_OIDC_AUDIENCE: audience,
    };
  }

  /** Serves a service, with a new key. @param service its address */
  async serve(service: string): Promise<void> {
    const pair = await generateKeyPair('RS256', { extractable: true });
    const kid = `key-${Math.random().toString(36).slice(2)}`;
    const jwk = { ...(await exportJWK(pair.privateKey)), kid, alg: 'RS256', use: 'sig' };
    this.#key = { kid, jwk, ...pair };
    this.#provider = new Provider(this.issuer, {
      clients: [
        {
          client_id: CLIENT,
          client_secret: SECRET,
          redirect_uris: [`${service}/auth/oidc/callback`],
          grant_types: ['authorization_code', 'client_credentials'],
          response_types: ['code'],
        },
      ],
      jwks: { keys: [jwk] },
      cookies: { keys: ['a key of cookies'] },
      claims: {
        openid: ['sub'],
        profile: ['name', 'preferred_username', 'groups'],
        email: ['email', 'email_verified'],
      },
      findAccount: (_context: unknown, sub: string) => ({
        accountId: sub,
        claims: () => ({ sub, ...this.people.get(sub) }),
      }),
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
      loadExistingGrant: async (context: {
        readonly oidc: {
          readonly session: { readonly accountId: string };
          readonly client: { readonly clientId: string };
          readonly provider: Provider;
        };
      }) => {
        const { session, client, provider } = context.oidc;
        const { accountId } = session;
        const grant = new provider.Grant({ accountId, clientId: client.clientId });
        grant.addOIDCScope('openid profile email');
        await grant.save();
        return grant;
      },
      ttl: { Grant: 600, Interaction: 600, Session: 600, AccessToken: 600, IdToken: 600 },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => undefined,
          useGrantedResource: () => true,
          getResourceServerInfo: () => ({
            scope: '',
            audience: AUDIENCE,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'RS256' } },
          }),
        },
      },
      extraTokenClaims: () => ({ groups: ['operators'] }),
    });
  }

  /** A token that the provider's key has signed. */
  token(
    claims: PersonClaims,
    {
      key = this.key.privateKey,
      header = {},
    }: { key?: CryptoKey | Uint8Array; header?: object } = {},
  ): Promise<string> {
    const now = Math.floor(Date.now() / 1000);
    const all = { iss: this.issuer, aud: AUDIENCE, iat: now, exp: now + 600, ...claims };
    return new SignJWT(all)
      .setProtectedHeader({ alg: 'RS256', kid: this.key.kid, ...header })
      .sign(key);
  }

  /** An access token of the provider itself, for the client. */
  async clientToken(): Promise<string> {
    const response = await fetch(`${this.issuer}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${btoa(`${CLIENT}:${encodeURIComponent(SECRET)}`)}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE }),
    });
    const { access_token } = (await response.json()) as { readonly access_token: string };
    return access_token;
  }

  get key(): Key {
    if (this.#key === undefined) throw new Error('the provider serves nobody yet');
    return this.#key;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = '/' } = request;
    this.requests.push(url.split('?')[0] ?? '');
    if (this.failing !== null || this.#provider === null) {
      response.writeHead(this.failing ?? 503).end();
      return;
    }
    if (!url.startsWith('/interaction/')) {
      this.#provider.callback()(request, response);
    } else if (request.method === 'GET') {
      response.setHeader('Content-Type', 'text/html');
      response.end(`<!doctype html><html lang="en"><title>Provider</title><form method="post">
        <label>Account <input name="sub"></label><button>Sign in</button>
        <button name="deny" value="yes">Refuse</button></form></html>`);
    } else {
      await this.#finish(this.#provider, request, response);
    }
  }

  async #finish(
    provider: Provider,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const form = new URLSearchParams(body);
    const result =
      form.get('deny') === 'yes'
        ? { error: 'access_denied', error_description: 'the person has refused' }
        : { login: { accountId: form.get('sub') ?? '' } };
    await provider.interactionFinished(request, response, result);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
