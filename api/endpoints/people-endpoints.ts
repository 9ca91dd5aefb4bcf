import { SIGN_IN_COOKIE, cookieIn, setCookie } from '../access/page-cookie.ts';
import { beginPageSession } from '../access/page-sessions.ts';
import { endpoint, type Call, type Endpoint, type EndpointResponse } from '../endpoint.ts';
import { HttpError, toHttpError } from '../errors.ts';
import type { IdentityProvider } from '../people/identity-provider.ts';
import type { PeopleSettings } from '../people/people-settings.ts';
import { SIGN_IN_SECONDS, seal, unseal, type BegunSignIn } from '../people/sign-in-cookie.ts';
import { signInPerson } from '../people/sign-in-person.ts';
import { SignInRefusedError } from '../people/sign-in-refused-error.ts';
import { textOf } from '../schemas/response-schemas.ts';
import { SignInQuery, SignInResponseQuery } from '../schemas/schemas.ts';
import { htmlPage } from '../serving/html-page.ts';

const CALLBACK = '/auth/oidc/callback';

const login = endpoint('GET /auth/oidc/login', {
  operationId: 'beginSignIn',
  summary: 'Redirects a person to the identity provider (OpenID Connect)',
  description: 'For browsers. Errors are pages, or JSON if the request does not accept HTML.',
  scopes: null,
  page: true,
  query: SignInQuery,
  responses: { 303: textOf('text/html') },
  responseHeaders: ['Location'],
  refusals: ['not_found'],
  async handle(call) {
    const { provider } = requirePeople(call);
    const { dependencies, context, query } = call;
    const base = call.base();
    const { url, proof } = await provider.begin(`${base}${CALLBACK}`);
    const begun: BegunSignIn = { ...proof, view: query.view };
    const sealed = seal(begun, context.now, dependencies.settings.tokenKeys);
    // The provider's response comes from another site, so the cookie must be sent with its links.
    const cookie = { sameSite: 'Lax', seconds: SIGN_IN_SECONDS } as const;
    const cookies = [setCookie(SIGN_IN_COOKIE, sealed, base, cookie)];
    const link = { to: url, text: 'Go to the identity provider' };
    const html = htmlPage({ title: 'Sign in', text: [], link });
    return { status: 303, headers: { Location: url }, cookies, html };
  },
});

const callback = endpoint(`GET ${CALLBACK}`, {
  operationId: 'completeSignIn',
  summary: 'Receives the response of the identity provider, and signs the person in',
  description:
    'For browsers. Sets the cookie of the session, and redirects to the web page. Errors are pages, or JSON if the request does not accept HTML.',
  scopes: null,
  page: true,
  query: SignInResponseQuery,
  responses: { 200: textOf('text/html') },
  refusals: ['forbidden', 'not_found'],
  async handle(call) {
    const people = requirePeople(call);
    // A response can be used only once, regardless of the outcome.
    const spent = { 'Set-Cookie': noSignIn(call) };
    const complete = () => completeSignIn(call, people);
    return complete().catch((error: unknown) => {
      const { code, message, details, headers } = toHttpError(error);
      if (code === 'internal_error') throw error;
      if (error instanceof SignInRefusedError) throw error.with(spent);
      if (code === 'conflict')
        throw new SignInRefusedError('conflict', message, { headers: spent });
      throw new HttpError(code, message, details, { ...headers, ...spent });
    });
  },
});

export const peopleEndpoints: readonly Endpoint[] = [login, callback];

interface People {
  readonly settings: PeopleSettings;
  readonly provider: IdentityProvider;
}

/** @throws HttpError 404 */
function requirePeople({ dependencies }: Pick<Call, 'dependencies'>): People {
  const { settings, identityProvider: provider } = dependencies;
  if (settings.people !== null && provider !== null) return { settings: settings.people, provider };
  const message = 'people cannot sign in here: SVC_OIDC_ISSUER is not set';
  throw new HttpError('not_found', message, { resource: 'identity provider' });
}

const noSignIn = ({ base }: Pick<Call, 'base'>): string =>
  setCookie(SIGN_IN_COOKIE, '', base(), { sameSite: 'Lax', seconds: 0 });

async function completeSignIn(
  call: Call<unknown, SignInResponseQuery>,
  { settings, provider }: People,
): Promise<EndpointResponse> {
  const { dependencies, context, request } = call;
  const base = call.base();
  const begun = begunSignIn(call, base);
  const address = new URL(`${base}${CALLBACK}`);
  const [, search = ''] = request.url.split('?', 2);
  address.search = search;
  const claims = await provider.complete(address, begun);
  const { sub, iat } = claims;
  if (typeof sub !== 'string' || typeof iat !== 'number') {
    throw new SignInRefusedError(
      'invalid_response',
      'the identity provider does not say who you are',
    );
  }
  const verified = { claims, subject: sub, issuedAt: iat * 1000 };
  const { agentId, agent } = await signInPerson(dependencies, settings, verified, context);
  const { cookie, position } = await beginPageSession(call, agentId, agent);
  // A navigation that another site caused carries no strict cookie, even after a redirect. This page therefore starts a
  // new navigation.
  const html = htmlPage({
    title: 'Signed in',
    text: [`You are signed in as ${agent.name}.`],
    link: { to: `../../ext/webui/#/${begun.view}`, text: 'Continue' },
    follow: true,
  });
  return { html, position, cookies: [cookie, noSignIn(call)] };
}

/**
 * The sign-in that this browser started. Without this check, an attacker could make the person's browser use the
 * attacker's response. The person would then work in the attacker's account.
 * @throws SignInRefusedError
 */
function begunSignIn(
  { dependencies, context, request, query }: Call<unknown, SignInResponseQuery>,
  base: string,
): BegunSignIn {
  const sealed = cookieIn(request.headers, SIGN_IN_COOKIE, base);
  const { tokenKeys } = dependencies.settings;
  const begun = sealed === null ? null : unseal(sealed, context.now, tokenKeys);
  if (begun !== null && query.state === begun.state) return begun;
  const message =
    'this browser did not start this sign-in, or it took more than ten minutes; sign in again';
  const cause = begun === null ? 'no sign-in in this browser' : 'the state is of another sign-in';
  throw new SignInRefusedError('unknown_sign_in', message, { cause });
}
