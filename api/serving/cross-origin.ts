import cors from 'cors';
import type { RequestHandler } from 'express';

/** Headers of answers that a page of another origin may read. */
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

/** Headers that a page of another origin may send. */
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

/** Seconds that a browser keeps what it was told of a path. */
const KEPT = 600;

/**
 * Lets pages of some origins call this service (`SVC_CORS_ORIGINS`). A call is made by a token that the page
 * itself sends, never by a cookie, so no credentials of the browser are taken.
 *
 * @param origins `*` for every origin
 * @returns null where none was named: browsers then let no page of another origin read an answer
 */
export function crossOrigin(origins: readonly string[] | undefined): RequestHandler | null {
  if (origins === undefined) return null;
  return cors({
    origin: origins.includes('*') ? '*' : [...origins],
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    allowedHeaders,
    exposedHeaders,
    maxAge: KEPT,
    // The route answers OPTIONS, so that it is counted like all else, and an unknown path stays unknown.
    preflightContinue: true,
  });
}
