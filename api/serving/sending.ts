import express, { type Response } from 'express';
import { writeJson } from '../../domain/exact-numbers.ts';
import { areDeferred, endWithJson } from './response-headers.ts';

/**
 * Ends a response with a JSON body. Express's own `json` would respond with 304 to a matching `If-None-Match`, but
 * responses must never come from a cache.
 */
export function sendJson(response: Response, status: number, body: unknown): void {
  endWithJson(response, status, writeJson(body));
}

/**
 * Replaces Express's slower `json` for the handlers of extensions, and writes large floats exactly. It keeps a type that
 * is already set, and leaves responses without a body to Express.
 */
export function respondWithJson(this: Response, body?: unknown): Response {
  const { statusCode } = this;
  if (body === undefined || statusCode < 200 || statusCode === 204 || statusCode === 304) {
    return express.response.json.call(this, body);
  }
  if (areDeferred(this) || !this.hasHeader('Content-Type')) {
    sendJson(this, statusCode, body);
    return this;
  }
  const json = writeJson(body);
  this.setHeader('Content-Length', Buffer.byteLength(json));
  return this.end(json);
}
