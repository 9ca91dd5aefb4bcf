import cors from 'cors';
import type { RequestHandler } from 'express';

/** Response headers that a page of another origin may read. */
const exposedHeaders = [
  'ETag',
  'Location',
  'Retry-After',
  'WWW-Authenticate',
  'Idempotent-Replayed',
  'X-Event-Position',
  'X-Read-Position',
  'X-Request-Id',
  'X-Total-Count',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
];

/** Request headers that a page of another origin may send. */
const allowedHeaders = [
  'Authorization',
  'Content-Type',
  'Idempotency-Key',
  'If-Match',
  'Last-Event-ID',
  'MCP-Protocol-Version',
  'X-Reason',
  'X-Request-Id',
  'X-Scopes',
  'traceparent',
];

/** How long a browser may cache the response to a preflight. Seconds. */
const PREFLIGHT_MAX_AGE = 600;

/**
 * Lets pages of other origins call this service (`SVC_CORS_ORIGINS`). Such pages must send a token; the page's cookie
 * is ignored in their requests.
 * @param origins `*` for every origin
 * @returns null if none is configured; browsers then block pages of other origins
 */
export function crossOrigin(origins: readonly string[] | undefined): RequestHandler | null {
  if (origins === undefined) return null;
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    allowedHeaders,
    exposedHeaders,
    maxAge: PREFLIGHT_MAX_AGE,
    // The route answers OPTIONS, so that it is counted, and unknown paths stay unknown.
    preflightContinue: true,
  });
}
