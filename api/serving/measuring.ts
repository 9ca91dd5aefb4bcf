import type { NextFunction, Request, Response } from 'express';
import type { Telemetry } from '../../observability/telemetry.ts';

/** The label of a request that no route has taken. */
const UNKNOWN = 'unknown';

/** Methods that are labels as they are; whatever else a client sends is one of them all. */
const methods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
]);

/**
 * Counts every request, and how long it took from its arrival to the end of its answer. The route that takes it
 * says which it is by {@link takenBy}: labels come from a closed set, never from a path as it was sent.
 */
export function measure(telemetry: Telemetry) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const arrived = performance.now();
    // Comes once; `once` itself would take another closure.
    response.on('close', () => {
      (response.locals['ended'] as (() => void) | undefined)?.();
      const endpoint = (response.locals['endpoint'] as string | undefined) ?? UNKNOWN;
      const method = methods.has(request.method) ? request.method : 'other';
      telemetry.count('http_requests_total', { method, endpoint });
      // A client that went away before its answer was whole has got none.
      if (!response.writableFinished) return;
      telemetry.count('http_responses_total', { status: String(response.statusCode) });
      if (response.locals['notMeasured'] === true) return;
      telemetry.observe('http_request_seconds', (performance.now() - arrived) / 1000, {
        method,
        endpoint,
      });
    });
    next();
  };
}

/**
 * Calls back once a request is over, before it is counted: one listener does for both. At most one a request; at once
 * for one whose client has left already, of which no other word would come.
 */
export function whenEnded(response: Response, call: () => void): void {
  if (response.closed) call();
  else response.locals['ended'] = call;
}

/** Names the route of a request. @param path as the interface writes it: `/tasks/{id}` */
export function takenBy(response: Response, path: string): void {
  response.locals['endpoint'] = path;
}

/** An answer that goes on for as long as its client likes: how long it took says nothing. */
export function notMeasured(response: Response): void {
  response.locals['notMeasured'] = true;
}

/** `/tasks/:id` as the interface writes it: `/tasks/{id}`. */
export function writtenPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}
