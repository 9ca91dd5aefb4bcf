import type { NextFunction, Request, Response } from 'express';
import { ArtifactError } from '../domain/artifacts/artifact-store.ts';
import { RefusalError, type Issue, type RefusalCode } from '../domain/errors.ts';
import { EventStoreError, type EventStoreErrorCode } from '../domain/event-store.ts';
import { SecretError } from '../domain/secrets/secret-source.ts';
import type { Telemetry } from '../observability/telemetry.ts';
import { ReadModelError } from '../projections/read-model.ts';
import { CoordinationError } from '../scheduler/coordination.ts';
import { challengeOf } from './access/challenges.ts';
import { htmlPage } from './serving/html-page.ts';
import { applyHeaders, endWithHtml, requestIdOf } from './serving/response-headers.ts';
import { sendJson } from './serving/sending.ts';
import { shownPath } from './serving/shown-path.ts';

/** The codes of the error body, with their statuses. */
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

/** An error as the client receives it. */
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

/** An error of OAuth 2.0 (RFC 6749, section 5.2): 401 for `invalid_client`, otherwise 400. */
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

  /** The body; the RFC restricts the characters of the description. */
  body(): object {
    const description = this.message.replaceAll('"', "'").replaceAll(/[^ !#-[\]-~]/g, '?');
    return { error: this.oauthCode, error_description: description };
  }
}

/** Invalid input. `issues` lists all issues; `field` and `issue` repeat the first one. */
export function badRequest(issues: readonly [Issue, ...Issue[]]): HttpError {
  const [{ field, issue }] = issues;
  return new HttpError('bad_request', `${field}: ${issue}`, { field, issue, issues });
}

/** The error for a disabled agent that has proved its identity. */
export const DISABLED = 'the agent is disabled; an administrator can enable it';

/** The error for a missing or invalid token. */
export function unauthorized(message: string, requiredScopes: readonly string[] = []): HttpError {
  const headers = { 'WWW-Authenticate': 'Bearer' };
  return new HttpError('unauthorized', message, { required_scopes: requiredScopes }, headers);
}

/** The error for a valid token with too few scopes, or for another agent's resource. */
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

const refusalCodes: Readonly<Record<RefusalCode, ErrorCode>> = {
  INVALID: 'bad_request',
  NOT_FOUND: 'not_found',
  FORBIDDEN: 'forbidden',
  STATE_CONFLICT: 'conflict',
  REVISION_MISMATCH: 'precondition_failed',
};

const storeCodes: Readonly<Partial<Record<EventStoreErrorCode, ErrorCode>>> = {
  CONFLICT: 'conflict',
  OUTCOME_UNKNOWN: 'unavailable',
  UNAVAILABLE: 'unavailable',
  TOO_LARGE: 'payload_too_large',
};

/** Maps an error from anywhere in the service to the one that the client receives. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof RefusalError) {
    return new HttpError(refusalCodes[error.code], error.message, error.details);
  }
  if (error instanceof EventStoreError) {
    const code = storeCodes[error.code];
    if (code === 'unavailable') return unavailable('stream_store', 'event log unavailable');
    if (code !== undefined) return new HttpError(code, error.message);
    if (error.code === 'CORRUPT_EVENT') return corrupt(error);
  }
  if (error instanceof ReadModelError) {
    return error.code === 'NO_VIEW'
      ? unavailable('projections', 'the view is being built')
      : unavailable('database', 'read model unavailable');
  }
  if (error instanceof CoordinationError) {
    return unavailable('database', 'coordination store unavailable');
  }
  if (error instanceof ArtifactError) {
    return error.code === 'UNAVAILABLE'
      ? unavailable('artifact_store', 'artifact store unavailable')
      : new HttpError('internal_error', error.message, { error_type: error.code });
  }
  if (error instanceof SecretError && error.retryable) {
    return unavailable('secrets', 'a backend of secrets is unavailable');
  }
  // A part of the path can't be decoded.
  if (error instanceof URIError) {
    return badRequest([{ field: 'path', issue: 'must be percent-encoded UTF-8' }]);
  }
  return new HttpError('internal_error', 'internal error');
}

/** The message leaves out the cause, which may quote the event and is only logged. */
function corrupt({ code, stream, revision }: EventStoreError): HttpError {
  const event = revision === undefined ? 'an event' : `event ${revision}`;
  const details = { error_type: code, stream: stream ?? null, revision: revision ?? null };
  const message = `${event} of ${stream ?? 'the log'} can't be read`;
  return new HttpError('internal_error', message, details);
}

/** A part of the service is unavailable. @param component as `GET /health` names it */
export function unavailable(component: string, message: string): HttpError {
  return new HttpError('unavailable', message, { component }, { 'Retry-After': '1' });
}

/** The error if a view has not passed the requested position of a read. @param limit milliseconds of waiting */
export function positionNotReached(position: string, limit: number): HttpError {
  return unavailable('projections', `the view has not reached ${position} within ${limit} ms`);
}

/** The error body of all endpoints but OAuth's. */
export function errorBody(error: HttpError, requestId: string): object {
  const { code, message, details } = error;
  return { error: code, message, details, request_id: requestId };
}

/** The key of `response.locals` under which a response shows its errors to a person. */
const AS_PAGES = 'errorsAsPages';

/** Shows errors of this response as HTML pages to browsers. Other clients get JSON. */
export function showErrorsAsPages(response: Response): void {
  response.locals[AS_PAGES] = true;
}

/** An error as shown to a person. */
function errorPage(error: HttpError, requestId: string): string {
  const [first = '', ...rest] = error.message;
  const said = `${first.toUpperCase()}${rest.join('')}.`;
  return htmlPage({
    title: 'Could not sign in',
    text: [said, `Request ${requestId}`],
    link: { to: '../../ext/webui/', text: 'Back to the page' },
  });
}

export function sendError(response: Response, error: HttpError, requestId: string): void {
  const status = errorStatuses[error.code];
  response.set(error.headers);
  const isOAuth = error instanceof OAuthError;
  const required = error.details['required_scopes'];
  const challenge = isOAuth ? undefined : challengeOf(response, status, required);
  if (challenge !== undefined) response.set('WWW-Authenticate', challenge);
  const asPage = response.locals[AS_PAGES] === true && response.req.accepts('json', 'html');
  if (asPage === 'html') {
    endWithHtml(response, status, errorPage(error, requestId));
    return;
  }
  sendJson(response, status, isOAuth ? error.body() : errorBody(error, requestId));
}

/** The last handler: responds with the thrown error. Internal errors are logged in full. */
export function errorHandler(telemetry: Telemetry, production: boolean) {
  return (thrown: unknown, request: Request, response: Response, next: NextFunction): void => {
    if (response.headersSent) {
      next(thrown);
      return;
    }
    applyHeaders(response);
    const requestId = requestIdOf(response);
    const error = toHttpError(thrown);
    // An HttpError is already a complete response, even if it is an internal error of an extension.
    if (error.code !== 'internal_error' || error === thrown) {
      // The cause names files and machines, so it is only logged.
      if (error.code === 'unavailable' && error !== thrown) {
        const fields = { request: requestId, component: error.details['component'] };
        telemetry.failures.failed('request failed, component unavailable', thrown, fields);
      }
      sendError(response, error, requestId);
      return;
    }
    const path = shownPath(request);
    telemetry.log.error('request failed', { request: requestId, path, error: thrown });
    const details = { ...causeOf(thrown, production), ...error.details };
    sendError(response, new HttpError('internal_error', error.message, details), requestId);
  };
}

/** The cause of an internal error in its `details`. The traceback is only included outside of production. */
export function causeOf(thrown: unknown, production: boolean): Readonly<Record<string, unknown>> {
  if (!(thrown instanceof Error)) return { error_type: typeof thrown };
  const { name: error_type, stack: traceback } = thrown;
  return production ? { error_type } : { error_type, traceback };
}
