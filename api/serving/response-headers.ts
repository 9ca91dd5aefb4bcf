import { ServerResponse } from 'node:http';
import type { Express, Response } from 'express';
import { securityHeaders } from './security-headers.ts';

const JSON_TYPE = 'application/json; charset=utf-8';
const HTML_TYPE = 'text/html; charset=utf-8';

/** The headers of every response, alternating names and values. */
const commonHeaders: readonly string[] = [
  ...Object.entries(securityHeaders()).flat(),
  'Cache-Control',
  'no-store',
];

/**
 * Starts a response's headers. They are collected in a list, because `node:http` writes a list faster than headers that
 * are set one by one. Any other access to the headers applies them, see {@link applyHeadersOnAccess}.
 */
export function deferHeaders(response: Response, requestId: string): void {
  response.locals['requestId'] = requestId;
  response.locals['headers'] = [...commonHeaders, 'X-Request-Id', requestId];
}

/** The id of the request; empty before it has one. */
export function requestIdOf(response: Response): string {
  const known = response.locals['requestId'] as string | undefined;
  return known ?? String(response.getHeader('X-Request-Id') ?? '');
}

/** Sets a header. It is deferred if the others are. */
export function setHeader(response: Response, name: string, value: string): void {
  const headers = deferredHeaders(response);
  const at = headers?.indexOf(name) ?? -1;
  if (headers === undefined) response.setHeader(name, value);
  else if (at === -1) headers.push(name, value);
  else headers[at + 1] = value;
}

/** Ends a response with JSON. */
export function endWithJson(response: Response, status: number, json: string): void {
  endWith(response, status, JSON_TYPE, json);
}

/** Ends a response with an HTML page. */
export function endWithHtml(response: Response, status: number, html: string): void {
  endWith(response, status, HTML_TYPE, html);
}

function endWith(response: Response, status: number, type: string, text: string): void {
  const headers = deferredHeaders(response);
  const length = Buffer.byteLength(text);
  if (headers === undefined) {
    response.statusCode = status;
    response.setHeader('Content-Type', type);
    response.setHeader('Content-Length', length);
  } else {
    headers.push('Content-Type', type, 'Content-Length', String(length));
    response.locals['headers'] = undefined;
    response.writeHead(status, headers);
  }
  response.end(text);
}

/** Whether all headers so far are deferred. */
export function areDeferred(response: Response): boolean {
  return deferredHeaders(response) !== undefined;
}

/** Hands deferred headers to `node:http`. */
export function applyHeaders(response: Response): void {
  const headers = deferredHeaders(response);
  if (headers === undefined) return;
  response.locals['headers'] = undefined;
  for (let at = 0; at < headers.length; at += 2) {
    response.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
  }
}

/** All methods that read, set or send headers. */
const headerMethods = [
  'setHeader',
  'setHeaders',
  'appendHeader',
  'getHeader',
  'getHeaders',
  'getHeaderNames',
  'hasHeader',
  'removeHeader',
  'writeHead',
] as const;

/** Makes each access to a response's headers apply the deferred ones first. */
export function applyHeadersOnAccess(app: Express): void {
  for (const name of headerMethods) {
    const original = ServerResponse.prototype[name] as (...given: unknown[]) => unknown;
    Object.defineProperty(app.response, name, {
      configurable: true,
      writable: true,
      value(this: Response, ...given: unknown[]): unknown {
        applyHeaders(this);
        return original.apply(this, given);
      },
    });
  }
}

function deferredHeaders(response: Response): string[] | undefined {
  // Express gives a response its locals after it has touched its headers.
  const locals = response.locals as Response['locals'] | undefined;
  return locals?.['headers'] as string[] | undefined;
}
