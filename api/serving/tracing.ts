import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Span, Traces } from '../../observability/telemetry.ts';
import { requestIdOf } from './response-headers.ts';
import type { Call } from '../endpoint.ts';
import { errorStatuses, toHttpError } from '../errors.ts';
import { knownMethods, routeOf } from './measuring.ts';
import { shownPath } from './shown-path.ts';

/** Paths that machines poll all the time. */
const untraced = /^\/(?:health(?:\/|\?|$)|ext\/observability\/metrics)/;

/**
 * Creates a span for each request, named by its route, in the trace that `traceparent` names. Query and headers are
 * left out, because they may hold tokens.
 */
export function traceRequests(traces: Traces): RequestHandler {
  return (request: Request, response: Response, next: NextFunction): void => {
    if (untraced.test(request.url)) {
      next();
      return;
    }
    // The semantic conventions use this name for all other methods.
    const method = knownMethods.has(request.method) ? request.method : '_OTHER';
    const span = traces.begin(method, {
      kind: 'server',
      parent: request.get('traceparent'),
      attributes: {
        'http.request.method': method,
        'url.path': shownPath(request),
        'url.scheme': request.protocol,
        'network.protocol.version': request.httpVersion,
        'server.address': request.hostname,
        'svc.request.id': requestIdOf(response),
      },
    });
    response.locals['span'] = span;
    const end = (): void => {
      const route = routeOf(response);
      const status = response.statusCode;
      if (route !== undefined) span.rename(`${method} ${route}`);
      span.set({ 'http.route': route });
      if (response.headersSent) span.set({ 'http.response.status_code': status });
      if (status >= 500) span.fail(String(status));
      span.end();
    };
    // Called after the other listeners, because they name the routes of extensions.
    response.once('close', () => queueMicrotask(end));
    span.within(next);
  };
}

/** The span of a request; undefined if it is not traced. */
export function spanOf(response: Response): Span | undefined {
  return response.locals['span'] as Span | undefined;
}

/**
 * Runs a command in its own span. The command's events carry the span's `traceparent`. A refusal does not fail the
 * span.
 */
export async function traceCommand<T>(
  traces: Traces,
  response: Response,
  call: Call,
  run: (call: Call) => Promise<T> | T,
): Promise<T> {
  const span = traces.begin(`command ${call.action}`, {
    parent: spanOf(response),
    attributes: { 'svc.agent.id': call.caller?.agentId },
  });
  const { traceparent } = span;
  try {
    return await span.within(() => run({ ...call, context: { ...call.context, traceparent } }));
  } catch (error) {
    const { code } = toHttpError(error);
    if (errorStatuses[code] >= 500) span.fail(code);
    else span.set({ 'svc.refusal': code });
    throw error;
  } finally {
    span.end();
  }
}
