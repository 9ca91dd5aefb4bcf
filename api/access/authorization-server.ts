import type { Express } from 'express';
import { OAuthError } from '../errors.ts';
import { servePlainly } from '../serving/plain-paths.ts';
import { sendJson } from '../serving/sending.ts';
import { MCP_PATH, scopes } from './protected-resource.ts';
import { baseOf } from './public-address.ts';

/** Path of the metadata (RFC 8414, section 3); the path of the issuer follows. */
const WELL_KNOWN = '/.well-known/oauth-authorization-server';

/** The path of the token endpoint (RFC 6749, section 3.2). */
export const TOKEN_PATH = '/oauth/token';

/**
 * The path of the authorization endpoint. It rejects every request, but some clients reject metadata without such an
 * endpoint.
 */
const AUTHORIZATION_PATH = '/oauth/authorize';

/** The grants that the token endpoint exchanges for tokens. */
export const grantTypes = ['client_credentials', 'refresh_token'] as const;

/**
 * Serves the metadata of the service as the authorization server of its own tokens (RFC 8414), and an authorization
 * endpoint that rejects all requests: agents authenticate by their secrets, there is no login.
 */
export function serveAuthorizationServer(
  app: Express,
  settings: { readonly publicUrl: string | undefined },
): void {
  const { publicUrl } = settings;
  const { pathname } = new URL(publicUrl ?? 'http://localhost');
  // The issuer's path follows the well-known one, and a proxy may pass on either.
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
    const message = 'there is no login: use the grant client_credentials at the token endpoint';
    throw new OAuthError('unsupported_response_type', message);
  };
  servePlainly(app, AUTHORIZATION_PATH, refuse, { page: true });
}

/**
 * Whether a resource (RFC 8707) is this service, or its endpoint of the Model Context Protocol. A trailing slash, and
 * capitals in scheme and host, do not matter.
 * @param base the address of the service
 */
export function isOwnResource(resource: string, base: string): boolean {
  if (!URL.canParse(resource) || resource.includes('#')) return false;
  const normalized = (url: string): string => new URL(url).href.replace(/\/$/, '');
  return [base, `${base}${MCP_PATH}`].some((own) => normalized(own) === normalized(resource));
}
