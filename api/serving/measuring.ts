import type { NextFunction, Request, Response } from 'express';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Methods that have their own label; all others share one. */
export const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
]);

/**
 * Counts every request, and measures the time from its arrival to the end of its response. Labels come from a closed
 * set: the route that {@link setRoute} named, never the path as it was sent.
 */
export function measure(telemetry: Telemetry) {
  return (request: Request, response: Response, next: NextFunction): void => {
    const arrived = performance.now();
    response.on('close', () => {
      (response.locals['onEnd'] as (() => void) | undefined)?.();
      const endpoint = routeOf(response) ?? 'unknown';
      const method = knownMethods.has(request.method) ? request.method : 'other';
      telemetry.count('http_requests_total', { method, endpoint });
      // A client that left early did not receive a response.
      if (!response.writableFinished) return;
      telemetry.count('http_responses_total', { status: String(response.statusCode) });
      if (response.locals['notMeasured'] === true) return;
      const seconds = (performance.now() - arrived) / 1000;
      telemetry.observe('http_request_seconds', seconds, { method, endpoint });
    });
    next();
  };
}

/** Calls back once a request has ended, before the request is counted. At most one callback per request. */
export function whenEnded(response: Response, call: () => void): void {
  if (response.closed) call();
  else response.locals['onEnd'] = call;
}

/** Names the route of a request. @param path as the interface's description writes it: `/tasks/{id}` */
export function setRoute(response: Response, path: string): void {
  response.locals['endpoint'] = path;
}

/** The route of a request, once it is known. */
export function routeOf(response: Response): string | undefined {
  return response.locals['endpoint'] as string | undefined;
}

/** Excludes the time of a response whose client decides how long it lasts. */
export function notMeasured(response: Response): void {
  response.locals['notMeasured'] = true;
}

/** `/tasks/:id` as the interface's description writes it: `/tasks/{id}`. */
export function describedPath(path: string): string {
  return path.replaceAll(/:(\w+)/g, '{$1}');
}
