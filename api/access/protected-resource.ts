import type { Express, Request, RequestHandler } from 'express';
import { HttpError } from '../errors.ts';
import { servePlainly } from '../serving/plain-paths.ts';
import { sendJson } from '../serving/sending.ts';
import { challengeFor } from './challenges.ts';
import { baseOf, addressOf } from './public-address.ts';

/** The endpoint of the Model Context Protocol, whose clients discover how to authenticate. */
export const MCP_PATH = '/ext/mcp_http/mcp';
/** Matches like Express does: in upper or lower case, and with or without a final slash. */
const isMcpPath = new RegExp(`^${MCP_PATH}/?$`, 'i');

/** Path of the metadata (RFC 9728, section 3.1); the path of the resource follows. */
const WELL_KNOWN = '/.well-known/oauth-protected-resource';

export interface OriginSettings {
  /** `SVC_PUBLIC_URL`: the address at which clients reach the service; undefined: the address that they used. */
  readonly publicUrl: string | undefined;
  /** `SVC_CORS_ORIGINS`. */
  readonly corsOrigins: readonly string[] | undefined;
}

/**
 * Guards the endpoint of the Model Context Protocol, as its specification requires (2025-06-18 and later). An unknown
 * `Origin` gets 403, against DNS rebinding. A 401 or 403 names the resource's metadata (RFC 9728, section 5.1).
 */
export function guardProtectedResource(settings: OriginSettings): RequestHandler {
  return (request, response, next) => {
    if (isMcpPath.test(request.path)) {
      const origin = request.headers.origin;
      if (origin !== undefined && !isKnown(origin, request, settings)) {
        throw unknownOrigin(origin);
      }
      const metadata = `${baseOf(request, settings)}${WELL_KNOWN}${MCP_PATH}`;
      const hasToken = request.headers.authorization !== undefined;
      challengeFor(response, { metadata, hasToken });
    }
    next();
  };
}

/** Serves the metadata of the whole service, and of the endpoint of the Model Context Protocol (RFC 9728). */
export function serveMetadata(app: Express, settings: OriginSettings): void {
  for (const path of ['', MCP_PATH]) {
    servePlainly(app, `${WELL_KNOWN}${path}`, (response) => {
      const base = baseOf(response.req, settings);
      sendJson(response, 200, {
        resource: `${base}${path}`,
        authorization_servers: [base],
        resource_name: 'Task scheduling service',
        resource_documentation: `${base}/docs`,
        bearer_methods_supported: ['header'],
        scopes_supported: scopes,
      });
    });
  }
}

/** All scopes of the service. */
export const scopes = [
  'tasks:read',
  'tasks:write',
  'runs:read',
  'approvals:write',
  'events:publish',
  'events:read',
  'jobs:work',
  'audit:read',
  'secrets:read',
  'secrets:write',
  'ops',
  'admin',
];

function isKnown(
  origin: string,
  request: Request,
  { publicUrl, corsOrigins = [] }: OriginSettings,
): boolean {
  if (corsOrigins.includes('*') || corsOrigins.includes(origin)) return true;
  if (publicUrl !== undefined && new URL(publicUrl).origin === origin) return true;
  // If `Host` and `Origin` are the same name, that proves nothing, because the owner of the name
  // may resolve it to any address.
  return origin === addressOf(request) && isOwnAddress(new URL(origin).hostname);
}

/** Whether a host is an address, or `localhost`, which is resolved without DNS (RFC 6761). */
const isOwnAddress = (host: string): boolean =>
  /^\d+\.\d+\.\d+\.\d+$/.test(host) || host.startsWith('[') || /(?:^|\.)localhost$/.test(host);

function unknownOrigin(origin: string): HttpError {
  const issue = 'is not an origin that SVC_PUBLIC_URL or SVC_CORS_ORIGINS names';
  return new HttpError('forbidden', `Origin: ${origin} ${issue}`, { field: 'Origin', issue });
}
