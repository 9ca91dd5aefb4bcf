import { ServerResponse } from 'node:http';
import type { Express, Response } from 'express';
import { securityHeaders } from './security-headers.ts';

/** What every answer has, a name and its value by turns, but for the id of its request. */
const common: readonly string[] = [
  ...Object.entries(securityHeaders()).flat(),
  'Cache-Control',
  'no-store',
];

/**
 * Begins the headers of an answer. They are gathered aside and handed to `node:http` together, as setting one after the
 * other takes longer than finding the route; who does not know of this finds them laid open (see
 * {@link layOpenWhenTouched}).
 *
 * @param requestId what the answer tells as `X-Request-Id`
 */
export function beginHeaders(response: Response, requestId: string): void {
  response.locals['requestId'] = requestId;
  response.locals['headers'] = [...common, 'X-Request-Id', requestId];
}

/** The id of the request that is answered; empty where it was given none. */
export function requestIdOf(response: Response): string {
  const known = response.locals['requestId'] as string | undefined;
  return known ?? String(response.getHeader('X-Request-Id') ?? '');
}

/** Sets a header, in the place of one of its name. */
export function setHeader(response: Response, name: string, value: string): void {
  const headers = gathered(response);
  if (headers === undefined) {
    response.setHeader(name, value);
    return;
  }
  for (let at = 0; at < headers.length; at += 2) {
    if (headers[at] !== name) continue;
    headers[at + 1] = value;
    return;
  }
  headers.push(name, value);
}

/**
 * Hands what was gathered to `node:http`, from where on headers are read, set, and taken away as ever. For all that is
 * answered by other means than {@link endWith}.
 */
export function layOpen(response: Response): void {
  const headers = gathered(response);
  if (headers === undefined) return;
  response.locals['headers'] = undefined;
  for (let at = 0; at < headers.length; at += 2) {
    response.setHeader(headers[at] ?? '', headers[at + 1] ?? '');
  }
}

/** What reads, sets or sends headers in `node:http`. Express, and what ends or streams an answer, go by these. */
const touching = [
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

/**
 * Lets those who know nothing of gathered headers do as ever: with the first that reads, sets or sends one, all are laid
 * open. Who touches none has them written together.
 */
export function layOpenWhenTouched(app: Express): void {
  for (const name of touching) {
    const plain = ServerResponse.prototype[name] as (...given: unknown[]) => unknown;
    Object.defineProperty(app.response, name, {
      configurable: true,
      writable: true,
      value(this: Response, ...given: unknown[]): unknown {
        layOpen(this);
        return plain.apply(this, given);
      },
    });
  }
}

/** Whether nobody has read, set or sent a header of an answer otherwise than by this module. */
export function areGathered(response: Response): boolean {
  return gathered(response) !== undefined;
}

/** Ends a response with a text that is JSON. */
export function endWith(response: Response, status: number, text: string): void {
  const headers = gathered(response);
  const length = Buffer.byteLength(text);
  if (headers === undefined) {
    response.statusCode = status;
    response.setHeader('Content-Type', JSON_TYPE);
    response.setHeader('Content-Length', length);
  } else {
    headers.push('Content-Type', JSON_TYPE, 'Content-Length', String(length));
    response.locals['headers'] = undefined;
    response.writeHead(status, headers);
  }
  response.end(text);
}

const JSON_TYPE = 'application/json; charset=utf-8';

function gathered(response: Response): string[] | undefined {
  // Express gives a response its locals after it has touched its headers.
  const locals = response.locals as Response['locals'] | undefined;
  return locals?.['headers'] as string[] | undefined;
}
