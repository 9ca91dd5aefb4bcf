import { writeJson } from '../../domain/exact-numbers.ts';
import express, { type Response } from 'express';
import { areGathered, endWith } from './answer-headers.ts';

/**
 * Ends a response with a JSON body. Not by Express, whose `json` answers 304 to an `If-None-Match` that fits:
 * what is read here is never to come out of anybody's store.
 */
export function sendJson(response: Response, status: number, body: unknown): void {
  endWith(response, status, writeJson(body));
}

/**
 * In the place of Express's `json`, which takes as long as all that an endpoint does: handlers of extensions answer by
 * it. A type that was set before stays, and an answer that has no body is left to Express.
 */
export function answerJson(this: Response, body?: unknown): Response {
  const { statusCode } = this;
  if (body === undefined || statusCode < 200 || statusCode === 204 || statusCode === 304) {
    return express.response.json.call(this, body);
  }
  const text = writeJson(body);
  if (areGathered(this)) {
    endWith(this, statusCode, text);
    return this;
  }
  if (!this.hasHeader('Content-Type')) {
    this.setHeader('Content-Type', 'application/json; charset=utf-8');
  }
  this.setHeader('Content-Length', Buffer.byteLength(text));
  return this.end(text);
}
