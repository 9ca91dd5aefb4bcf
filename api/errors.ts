import type { NextFunction, Request, Response } from 'express';
import { Refusal, type Issue, type RefusalCode } from '../domain/errors.ts';
import { EventStoreError, type EventStoreErrorCode } from '../domain/event-store.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import { ReadModelError } from '../projections/read-model.ts';
import { CoordinationError } from '../scheduler/coordination.ts';
import { challengeOf } from './access/challenges.ts';
import { layOpen, requestIdOf } from './serving/answer-headers.ts';
import { sendJson } from './serving/sending.ts';

/** The codes of the error body, each with its status. */
export const errorStatuses = {
  bad_request: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  request_timeout: 408,
  conflict: 409,
  precondition_failed: 412,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  rate_limit_exceeded: 429,
  headers_too_large: 431,
  internal_error: 500,
  unavailable: 503,
  gateway_timeout: 504,
} as const;
export type ErrorCode = keyof typeof errorStatuses;

/** What a request is answered with when it is not done. */
export class HttpError extends Error {
  readonly code: ErrorCode;
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ErrorCode,
    message: string,
    details: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.name = 'HttpError';
    this.code = code;
    this.details = details;
    this.headers = headers;
  }
}

/** The codes of errors of OAuth 2.0 (RFC 6749, sections 4.1.2.1 and 5.2; RFC 8707, section 2). */
export const oauthErrorCodes = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'invalid_target',
  'unsupported_grant_type',
  'unsupported_response_type',
] as const;
export type OAuthErrorCode = (typeof oauthErrorCodes)[number];

/** A refusal in the form of OAuth 2.0 (RFC 6749, section 5.2): 401 for `invalid_client`, else 400. */
export class OAuthError extends HttpError {
  readonly oauthCode: OAuthErrorCode;

  constructor(oauthCode: OAuthErrorCode, message: string) {
    const isClient = oauthCode === 'invalid_client';
    const challenge = 'Basic realm="Task scheduling service", charset="UTF-8"';
    const headers = isClient ? { 'WWW-Authenticate': challenge } : {};
    super(isClient ? 'unauthorized' : 'bad_request', message, {}, headers);
    this.name = 'OAuthError';
    this.oauthCode = oauthCode;
  }

  /** The body; the RFC allows few characters in the description. */
  body(): object {
    const description = this.message.replaceAll('"', "'").replaceAll(/[^ !#-[\]-~]/g, '?');
    return { error: this.oauthCode, error_description: description };
  }
}

/** Input at fault. `issues` lists all faults; the first one is also named by itself. */
export function badRequest(issues: readonly [Issue, ...Issue[]]): HttpError {
  const [{ field, issue }] = issues;
  return new HttpError('bad_request', `${field}: ${issue}`, { field, issue, issues });
}

/** No token, or one that does not count. */
export function unauthorized(message: string, requiredScopes: readonly string[] = []): HttpError {
  return new HttpError(
    'unauthorized',
    message,
    { required_scopes: requiredScopes },
    { 'WWW-Authenticate': 'Bearer' },
  );
}

/** A valid token that does not reach. */
export function forbidden(
  message: string,
  requiredScopes: readonly string[],
  grantedScopes: readonly string[],
): HttpError {
  const details = { required_scopes: requiredScopes, granted_scopes: grantedScopes };
  return new HttpError('forbidden', message, details);
}

export function notFound(resource: string, id: string): HttpError {
  return new HttpError('not_found', `there is no ${resource} ${id}`, { resource, id });
}

const refusals: Readonly<Record<RefusalCode, ErrorCode>> = {
  INVALID: 'bad_request',
  NOT_FOUND: 'not_found',
  FORBIDDEN: 'forbidden',
  STATE_CONFLICT: 'conflict',
  REVISION_MISMATCH: 'precondition_failed',
};

const storeFaults: Readonly<Partial<Record<EventStoreErrorCode, ErrorCode>>> = {
  CONFLICT: 'conflict',
  OUTCOME_UNKNOWN: 'unavailable',
  UNAVAILABLE: 'unavailable',
  TOO_LARGE: 'payload_too_large',
};

/** The one table from what can go wrong anywhere to what the client is told. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof Refusal)
    return new HttpError(refusals[error.code], error.message, error.details);
  if (error instanceof EventStoreError) {
    const code = storeFaults[error.code];
    if (code === 'unavailable') return unavailable('stream_store', 'the event log is away');
    if (code !== undefined) return new HttpError(code, error.message);
    if (error.code === 'CORRUPT_EVENT') return corrupt(error);
  }
  if (error instanceof ReadModelError) {
    return error.code === 'NO_VIEW'
      ? unavailable('projections', 'the view is being built')
      : unavailable('database', 'the read model is away');
  }
  if (error instanceof CoordinationError) {
    return unavailable('database', 'the coordination store is away');
  }
  // Of the router: a part of the path can't be decoded.
  if (error instanceof URIError) {
    return badRequest([{ field: 'path', issue: 'is not well percent-encoded UTF-8' }]);
  }
  return new HttpError('internal_error', 'the service has a fault');
}

/** Why it can't be read is for the log alone: it may show what was read. */
function corrupt({ code, stream, revision }: EventStoreError): HttpError {
  const which = revision === undefined ? 'an event' : `the event ${revision}`;
  const details = { error_type: code, stream: stream ?? null, revision: revision ?? null };
  return new HttpError(
    'internal_error',
    `${which} of ${stream ?? 'the log'} can't be read`,
    details,
  );
}

/** A part of the service is away. @param component as `GET /health` names it */
export function unavailable(component: string, message: string): HttpError {
  return new HttpError('unavailable', message, { component }, { 'Retry-After': '1' });
}

/** A view has not passed a position that a read is to have passed. @param within milliseconds that it was waited for */
export function notReached(position: string, within: number): HttpError {
  return unavailable('projections', `the view has not reached ${position} within ${within} ms`);
}

/** The one error body of all endpoints. */
export function errorBody(error: HttpError, requestId: string): object {
  const { code, message, details } = error;
  return { error: code, message, details, request_id: requestId };
}

export function sendError(response: Response, error: HttpError, requestId: string): void {
  const status = errorStatuses[error.code];
  response.set(error.headers);
  const isOAuth = error instanceof OAuthError;
  const required = error.details['required_scopes'];
  const challenge = isOAuth ? undefined : challengeOf(response, status, required);
  if (challenge !== undefined) response.set('WWW-Authenticate', challenge);
  sendJson(response, status, isOAuth ? error.body() : errorBody(error, requestId));
}

/** The last handler: whatever was thrown becomes an answer; a fault of ours is logged whole. */
export function errorHandler(telemetry: Telemetry, production: boolean) {
  return (thrown: unknown, request: Request, response: Response, next: NextFunction): void => {
    if (response.headersSent) {
      next(thrown);
      return;
    }
    layOpen(response);
    const requestId = requestIdOf(response);
    const error = toHttpError(thrown);
    // What was made to be an answer is one as it is, a fault of an extension among them.
    if (error.code !== 'internal_error' || error === thrown) {
      // What exactly is wrong, with names of files and machines, is for the log alone.
      if (error.code === 'unavailable' && error !== thrown) {
        const fields = { request: requestId, component: error.details['component'], error: thrown };
        telemetry.log.warn('a request met a part of the service that is away', fields);
      }
      sendError(response, error, requestId);
      return;
    }
    telemetry.log.error('a request failed', {
      request: requestId,
      path: request.path,
      error: thrown,
    });
    const details = {
      error_type: thrown instanceof Error ? thrown.name : typeof thrown,
      ...error.details,
      ...(production || !(thrown instanceof Error) ? {} : { traceback: thrown.stack }),
    };
    sendError(response, new HttpError('internal_error', error.message, details), requestId);
  };
}
