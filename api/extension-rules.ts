import type { IncomingMessage } from 'node:http';
import type { TSchema } from '@sinclair/typebox';
import type { NextFunction, Request, Response } from 'express';
import type { Authentication } from './access/authentication.ts';
import { readJson } from './serving/body.ts';
import { HttpError, causeOf, toHttpError } from './errors.ts';
import type { DescribingExtension } from './endpoints/extension-endpoints.ts';
import type { InnerRequests } from './inner-requests.ts';
import type { KeyedCommands } from './keyed-commands.ts';
import { requestIdOf } from './serving/response-headers.ts';
import { reasonOf } from './serving/headers.ts';
import { setRoute, whenEnded } from './serving/measuring.ts';
import type { PageAccess } from './access/page-access.ts';
import { pageHeaders } from './serving/security-headers.ts';
import { sendJson } from './serving/sending.ts';
import { queryCheck } from './serving/validation.ts';

/** The host of the extensions, which serves `/ext/…` behind the guards that all requests pass. */
export interface MountedExtensions {
  /** Serves a request at `/ext/…`, or passes it on. */
  serve(request: Request, response: Response, next: NextFunction): Promise<void> | void;
  /** The loaded extensions, with their endpoints. */
  described(): readonly DescribingExtension[];
  /** Throws the error for a request at `/ext/…` that no handler has answered. */
  refuse(request: Request, response: Response, next: NextFunction): void;
}

/** The rules of the interface, as the host of the extensions applies them: its `HttpPort` describes them. */
export type ExtensionRules = ReturnType<typeof extensionRules>;

export function extensionRules(
  authentication: Authentication,
  settings: { readonly maxBodyBytes: number; readonly production: boolean },
  inner: InnerRequests,
  pages: Pick<PageAccess, 'authenticate'>,
  commands: KeyedCommands,
) {
  /** Compiled once for each schema. */
  const queryChecks = new WeakMap<object, ReturnType<typeof queryCheck>>();
  const refuseQuery = queryCheck(undefined);
  const queryCheckOf = (schema: object | undefined) => {
    if (schema === undefined) return refuseQuery;
    const check = queryChecks.get(schema) ?? queryCheck(schema as TSchema);
    queryChecks.set(schema, check);
    return check;
  };
  return {
    authenticate: (request: IncomingMessage, scopes: readonly string[]) =>
      authentication.authenticate(request, scopes),
    callerOf: (request: IncomingMessage) => authentication.callerOf(request),
    readBody: (request: IncomingMessage) => readJson(request, settings.maxBodyBytes),
    checkQuery(request: Request, schema: object | undefined): void {
      if (request.url.includes('?') || schema !== undefined) queryCheckOf(schema)(request.query);
    },
    visitorOf: (request: Request) => pages.authenticate(request),
    innerFor: (request: Request) => inner.announce(request),
    originOf: (request: Request) => ({
      source: request.ip ?? '',
      correlationId: request.res === undefined ? '' : requestIdOf(request.res),
      reason: reasonOf(request),
    }),
    once: <T>(
      request: Request,
      agentId: string,
      run: (commandId: string | null) => Promise<T>,
    ): Promise<T> => commands.once(request, agentId, run),
    errorOf({
      code,
      message,
      details,
    }: Pick<HttpError, 'code' | 'message' | 'details'>): HttpError {
      const headers: Record<string, string> =
        code === 'unauthorized' ? { 'WWW-Authenticate': 'Bearer' } : {};
      return new HttpError(code, message, details, headers);
    },
    knownError(error: unknown): HttpError | null {
      const known = toHttpError(error);
      return known.code === 'internal_error' ? null : known;
    },
    internalErrorOf: (extension_id: string, error: unknown) =>
      new HttpError('internal_error', `internal error of the extension ${extension_id}`, {
        extension_id,
        ...causeOf(error, settings.production),
      }),
    timeoutErrorOf: (extension_id: string, message: string, limit_seconds: number) =>
      new HttpError('gateway_timeout', message, { extension_id, limit_seconds }),
    setRoute: setRoute,
    whenEnded,
    sendJson,
    pageHeaders: pageHeaders(),
  };
}
