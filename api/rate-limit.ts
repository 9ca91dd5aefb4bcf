import type { Request, RequestHandler } from 'express';
import { ipKeyGenerator, rateLimit } from 'express-rate-limit';
import { toIso } from '../domain/clock.ts';
import type { Authentication } from './authentication.ts';
import type { ApiDependencies } from './dependencies.ts';
import { HttpError } from './errors.ts';
import { RequestCounts } from './request-counts.ts';

/** Bits of an IPv6 address that are one caller: what a provider gives to one customer. */
const IPV6_SUBNET = 56;

/**
 * Counts every request, but those of health, for the agent whose token it carries, or for its address where
 * it carries none that counts; and refuses what is over the limit, before all else that may be said of it.
 *
 * @returns null where `SVC_RATE_LIMIT` is 0
 */
export function rateLimiting(
  { settings, coordination, clock, telemetry }: ApiDependencies,
  authentication: Authentication,
): RequestHandler | null {
  const { rateLimit: limit, rateLimitWindowSeconds } = settings;
  if (limit === 0) return null;
  const window = rateLimitWindowSeconds * 1000;
  return rateLimit({
    windowMs: window,
    limit,
    legacyHeaders: true,
    standardHeaders: false,
    // They look for faults in the use of the library, by looking at the first requests.
    validate: false,
    store: new RequestCounts({ coordination, clock, log: telemetry.log, window }),
    skip: ({ path }) => path === '/health' || path.startsWith('/health/'),
    keyGenerator: async (request) => {
      const caller = await authentication.callerOf(request);
      return caller === null ? `address ${addressOf(request)}` : `agent ${caller.agentId}`;
    },
    handler: (request, _response, next) => {
      const { resetTime } = (request as Request & { rateLimit: { resetTime: Date } }).rateLimit;
      const remaining = resetTime.getTime() - clock.now();
      const details = {
        limit,
        window: `${rateLimitWindowSeconds}s`,
        reset_at: toIso(resetTime.getTime()),
      };
      const headers = { 'Retry-After': String(Math.max(1, Math.ceil(remaining / 1000))) };
      next(new HttpError('rate_limit_exceeded', 'too many requests', details, headers));
    },
  });
}

function addressOf(request: Request): string {
  return ipKeyGenerator(request.ip ?? '', IPV6_SUBNET);
}
