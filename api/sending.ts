import type { ServerResponse } from 'node:http';

/**
 * Ends a response with a JSON body. Not by Express, whose `json` answers 304 to an `If-None-Match` that fits:
 * what is read here is never to come out of anybody's store.
 */
export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(text));
  response.end(text);
}
