import type { Request, RequestHandler, Response } from 'express';
import { rateLimit } from 'express-rate-limit';
import { toIso } from '../../domain/clock.ts';
import { setHeader } from '../serving/response-headers.ts';
import type { Authentication } from './authentication.ts';
import { networkOf } from './client-address.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { HttpError } from '../errors.ts';
import type { InnerRequests } from '../inner-requests.ts';
import { RequestCounts } from './request-counts.ts';

/**
 * Counts all requests except health checks: for the agent of a valid token, otherwise for the address. Rejects requests
 * over the limit before any other check.
 * @param inner recognises requests that were already counted
 * @returns null if `SVC_RATE_LIMIT` is 0
 */
export function rateLimiting(
  { settings, coordination, clock, telemetry }: ApiDependencies,
  authentication: Authentication,
  inner: Pick<InnerRequests, 'isCounted'>,
): RequestHandler | null {
  const { rateLimit: limit, rateLimitWindowSeconds } = settings;
  if (limit === 0) return null;
  const window = rateLimitWindowSeconds * 1000;
  const setHeaders = (request: Request, response: Response): void => {
    const { rateLimit: state } = request as Counted;
    if (state === undefined) return;
    setHeader(response, 'X-RateLimit-Limit', String(limit));
    setHeader(response, 'X-RateLimit-Remaining', String(state.remaining));
    const reset = String(Math.ceil(state.resetTime.getTime() / 1000));
    setHeader(response, 'X-RateLimit-Reset', reset);
  };
  const limiter = rateLimit({
    windowMs: window,
    limit,
    // The header is set above, without the date that the library adds.
    legacyHeaders: false,
    standardHeaders: false,
    validate: false,
    store: new RequestCounts({ coordination, clock, failures: telemetry.failures, window }),
    skip: (request) =>
      request.path === '/health' || request.path.startsWith('/health/') || inner.isCounted(request),
    keyGenerator: async (request) => {
      const caller = await authentication.callerOf(request);
      return caller === null ? `address ${networkOf(request.ip ?? '')}` : `agent ${caller.agentId}`;
    },
    handler: (request, _response, next) => {
      const resetsAt = (request as Counted).rateLimit?.resetTime.getTime() ?? clock.now();
      const remaining = resetsAt - clock.now();
      const details = { limit, window: `${rateLimitWindowSeconds}s`, reset_at: toIso(resetsAt) };
      const headers = { 'Retry-After': String(Math.max(1, Math.ceil(remaining / 1000))) };
      next(
        new HttpError(
          'rate_limit_exceeded',
          'too many requests; wait until reset_at',
          details,
          headers,
        ),
      );
    },
  });
  return (request, response, next) =>
    limiter(request, response, (fault?: unknown) => {
      setHeaders(request, response);
      next(fault);
    });
}

/** A request that the library has counted. */
type Counted = Request & {
  readonly rateLimit?: { readonly remaining: number; readonly resetTime: Date };
};
