import type { NextFunction, Request, RequestHandler, Response } from 'express';
import type { Span, Traces } from '../../observability/telemetry.ts';
import { requestIdOf } from './answer-headers.ts';
import type { Call } from '../endpoint.ts';
import { errorStatuses, toHttpError } from '../errors.ts';

/** Methods as they are; whatever else a client sends is one of them all (as the semantic conventions call it). */
const methods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
]);
const OTHER = '_OTHER';

/** Asked again and again by machines: nobody looks for what follows from these. */
const untraced = /^\/(?:health(?:\/|\?|$)|ext\/observability\/metrics)/;

/**
 * Makes each request a span, named by its route, in the trace that the client says (`traceparent`). What is done for
 * the request runs within it. The query is left out, and so are all headers: they may hold tokens.
 */
export function traceRequests(traces: Traces): RequestHandler {
  return (request: Request, response: Response, next: NextFunction): void => {
    if (untraced.test(request.url)) {
      next();
      return;
    }
    const method = methods.has(request.method) ? request.method : OTHER;
    const span = traces.begin(method, {
      kind: 'server',
      parent: request.get('traceparent'),
      attributes: {
        'http.request.method': method,
        'url.path': request.path,
        'url.scheme': request.protocol,
        'network.protocol.version': request.httpVersion,
        'server.address': request.hostname,
        'svc.request.id': requestIdOf(response),
      },
    });
    response.locals['span'] = span;
    const end = (): void => {
      const route = response.locals['endpoint'] as string | undefined;
      const status = response.statusCode;
      if (route !== undefined) span.rename(`${method} ${route}`);
      span.set({ 'http.route': route });
      if (response.headersSent) span.set({ 'http.response.status_code': status });
      if (status >= 500) span.fail(String(status));
      span.end();
    };
    // After all who listen for the same: routes of extensions are named only then.
    response.once('close', () => queueMicrotask(end));
    span.within(next);
  };
}

/** The span of a request; none where it is not traced. */
export function spanOf(response: Response): Span | undefined {
  return response.locals['span'] as Span | undefined;
}

/**
 * Carries a command out within a span of its own, whose `traceparent` its events carry. What is refused by the rules
 * is told of, but is no error of the service.
 * @param action method and route
 */
export async function traceCommand<T>(
  traces: Traces,
  response: Response,
  action: string,
  call: Call,
  carryOut: (call: Call) => Promise<T> | T,
): Promise<T> {
  const span = traces.begin(`command ${action}`, {
    parent: spanOf(response),
    attributes: { 'svc.agent.id': call.caller?.agentId },
  });
  const { traceparent } = span;
  try {
    return await span.within(() =>
      carryOut({ ...call, context: { ...call.context, traceparent } }),
    );
  } catch (error) {
    const { code } = toHttpError(error);
    if (errorStatuses[code] >= 500) span.fail(code);
    else span.set({ 'svc.refusal': code });
    throw error;
  } finally {
    span.end();
  }
}
