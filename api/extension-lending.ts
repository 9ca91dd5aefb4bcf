import type { IncomingMessage } from 'node:http';
import type { TSchema } from '@sinclair/typebox';
import type { NextFunction, Request, Response } from 'express';
import type { Authentication } from './access/authentication.ts';
import { readJson } from './serving/body.ts';
import type { Caller } from './endpoint.ts';
import { HttpError, toHttpError, type ErrorCode } from './errors.ts';
import type { DescribingExtension } from './endpoints/extension-endpoints.ts';
import type { InnerRequest, InnerRequests } from './inner-requests.ts';
import type { KeyedCommands } from './keyed-commands.ts';
import { requestIdOf } from './serving/answer-headers.ts';
import { reasonOf } from './serving/headers.ts';
import { takenBy, whenEnded } from './serving/measuring.ts';
import type { PageAccess, Visitor } from './access/page-access.ts';
import { pageHeaders } from './serving/security-headers.ts';
import { sendJson } from './serving/sending.ts';
import { queryCheck } from './serving/validation.ts';

/** Whoever serves `/ext/…`, behind the guards that all requests pass. */
export interface MountedExtensions {
  /** Called once, before the first request. */
  useHttp(lent: Lent): void;
  /** Serves a request at `/ext/…`, or lets it go on. */
  serve(request: Request, response: Response, next: NextFunction): Promise<void> | void;
  /** Those that are loaded, with what they say of their endpoints. */
  described(): readonly DescribingExtension[];
  /** Tells what is wrong with a request at `/ext/…` that nobody has answered. */
  refuse(request: Request, response: Response, next: NextFunction): void;
}

/** The rules of the interface, lent to those who answer requests without being of it. */
export interface Lent {
  /** @throws HttpError 401, 403 */
  authenticate(request: IncomingMessage, scopes: readonly string[]): Promise<Caller> | Caller;
  callerOf(request: IncomingMessage): Promise<Caller | null>;
  /** Of a page that is closed. @throws HttpError 401, 429 */
  visitorOf(request: Request): Promise<Visitor>;
  /** @throws HttpError 400, 413, 415 */
  readBody(request: IncomingMessage): Promise<unknown>;
  /** @param schema of the query parameters; undefined: there are none @throws HttpError 400 */
  checkQuery(request: Request, schema: object | undefined): void;
  errorOf(error: {
    readonly code: ErrorCode;
    readonly message: string;
    readonly details: Readonly<Record<string, unknown>>;
  }): HttpError;
  /** A request of the service to itself, to answer another one. */
  innerFor(request: Request): InnerRequest;
  /** What the audit shows of what is done for a request. @throws HttpError 400 */
  originOf(request: Request): {
    readonly source: string;
    readonly correlationId: string;
    readonly reason?: string | undefined;
  };
  /**
   * Carries a command out once for the `Idempotency-Key` of its request.
   * @param carryOut gets the id of the command that the key stands for; null without one
   * @throws HttpError 400, 409, and what was answered the first time
   */
  once<T>(
    request: Request,
    agentId: string,
    carryOut: (commandId: string | null) => Promise<T>,
  ): Promise<T>;
  /** null for what is a fault of who answers. */
  knownError(error: unknown): HttpError | null;
  /** A fault of an extension, as its caller is told of it. */
  faultOf(extensionId: string, error: unknown): HttpError;
  /** An extension that has not answered in its time, as its caller is told of it. */
  lateOf(extensionId: string, message: string, seconds: number): HttpError;
  takenBy(response: Response, endpoint: string): void;
  whenEnded(response: Response, call: () => void): void;
  sendJson(response: Response, status: number, body: unknown): void;
  readonly pageHeaders: Readonly<Record<string, string>>;
}

/** Checks are compiled once for each schema. */
const queryChecks = new WeakMap<object, ReturnType<typeof queryCheck>>();
const refuseQuery = queryCheck(undefined);

function queryCheckOf(schema: object | undefined): ReturnType<typeof queryCheck> {
  if (schema === undefined) return refuseQuery;
  let check = queryChecks.get(schema);
  if (check === undefined) queryChecks.set(schema, (check = queryCheck(schema as TSchema)));
  return check;
}

export function lend(
  authentication: Authentication,
  settings: { readonly maxBodyBytes: number; readonly production: boolean },
  inner: InnerRequests,
  pages: Pick<PageAccess, 'authenticate'>,
  commands: KeyedCommands,
): Lent {
  return {
    authenticate: (request, scopes) => authentication.authenticate(request, scopes),
    callerOf: (request) => authentication.callerOf(request),
    readBody: (request) => readJson(request, settings.maxBodyBytes),
    checkQuery: (request, schema) => {
      if (request.url.includes('?') || schema !== undefined) queryCheckOf(schema)(request.query);
    },
    visitorOf: (request) => pages.authenticate(request),
    innerFor: (request) => inner.announce(request),
    originOf: (request) => ({
      source: request.ip ?? '',
      correlationId: request.res === undefined ? '' : requestIdOf(request.res),
      reason: reasonOf(request),
    }),
    once: (request, agentId, carryOut) => commands.once(request, agentId, carryOut),
    errorOf({ code, message, details }) {
      const headers: Record<string, string> =
        code === 'unauthorized' ? { 'WWW-Authenticate': 'Bearer' } : {};
      return new HttpError(code, message, details, headers);
    },
    knownError(error) {
      const known = toHttpError(error);
      return known.code === 'internal_error' ? null : known;
    },
    faultOf: (extension_id, error) =>
      new HttpError('internal_error', `the extension ${extension_id} has a fault`, {
        extension_id,
        error_type: error instanceof Error ? error.name : typeof error,
        ...(settings.production || !(error instanceof Error) ? {} : { traceback: error.stack }),
      }),
    lateOf: (extension_id, message, limit_seconds) =>
      new HttpError('gateway_timeout', message, { extension_id, limit_seconds }),
    takenBy,
    whenEnded,
    sendJson,
    pageHeaders: pageHeaders(),
  };
}
