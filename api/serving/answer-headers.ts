import type { Response } from 'express';
import { securityHeaders } from './security-headers.ts';

const commonHeaders = new Map(
  Object.entries({ ...securityHeaders(), 'Cache-Control': 'no-store' }),
);

/** Sets the headers that every answer has. */
export function setCommonHeaders(response: Response, requestId: string): void {
  response.setHeaders(commonHeaders);
  response.setHeader('X-Request-Id', requestId);
}

/** The id of the request that is answered; empty before it was given one. */
export function requestIdOf(response: Response): string {
  return String(response.getHeader('X-Request-Id') ?? '');
}
