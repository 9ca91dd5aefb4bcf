import type { Express } from 'express';
import { OAuthError } from '../errors.ts';
import { servePlainly } from '../serving/plain-paths.ts';
import { sendJson } from '../serving/sending.ts';
import { MCP_PATH, scopes } from './protected-resource.ts';
import { baseOf } from './public-address.ts';

/** Where the metadata of an authorization server are (RFC 8414, section 3); the path of its issuer follows. */
const WELL_KNOWN = '/.well-known/oauth-authorization-server';

/** The path of the token endpoint (RFC 6749, section 3.2). */
export const TOKEN_PATH = '/oauth/token';

/** Refuses every request, because nobody logs in. Some clients reject metadata that lack its address. */
const AUTHORIZATION_PATH = '/oauth/authorize';

/** What the token endpoint exchanges for tokens. */
export const grantTypes = ['client_credentials', 'refresh_token'] as const;

/**
 * Serves the metadata of the service as the authorization server of its own tokens (RFC 8414), and the authorization
 * endpoint, which refuses: agents authenticate by their secrets, and nobody logs in.
 */
export function serveAuthorizationServer(
  app: Express,
  settings: { readonly publicUrl: string | undefined },
): void {
  const { publicUrl } = settings;
  const { pathname } = new URL(publicUrl ?? 'http://localhost');
  // The path of an issuer stands behind the well-known one, and a proxy passes on both.
  for (const path of new Set(['', pathname.replace(/\/$/, '')])) {
    servePlainly(app, `${WELL_KNOWN}${path}`, (response) => {
      const base = baseOf(response.req, settings);
      sendJson(response, 200, {
        issuer: base,
        authorization_endpoint: `${base}${AUTHORIZATION_PATH}`,
        token_endpoint: `${base}${TOKEN_PATH}`,
        scopes_supported: scopes,
        response_types_supported: [],
        grant_types_supported: grantTypes,
        token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
        service_documentation: `${base}/docs`,
      });
    });
  }
  const refuse = (): never => {
    const message = 'nobody logs in here: use the grant client_credentials at the token endpoint';
    throw new OAuthError('unsupported_response_type', message);
  };
  servePlainly(app, AUTHORIZATION_PATH, refuse, { page: true });
}

/**
 * Whether a token of this service is for a resource (RFC 8707): the service itself, or its endpoint of the Model Context
 * Protocol. A slash at the end, and capitals in scheme and host, do not matter.
 *
 * @param base the address of the service
 */
export function isOwnResource(resource: string, base: string): boolean {
  if (!URL.canParse(resource) || resource.includes('#')) return false;
  const written = (text: string): string => new URL(text).href.replace(/\/$/, '');
  return [base, `${base}${MCP_PATH}`].some((own) => written(own) === written(resource));
}
