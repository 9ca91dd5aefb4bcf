import express, { type Response } from 'express';
import { writeJson } from '../../domain/exact-numbers.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

/**
 * Ends a response with a JSON body. Express's own `json` would answer 304 to a matching `If-None-Match`, but answers
 * must never come from a cache.
 */
export function sendJson(response: Response, status: number, body: unknown): void {
  sendJsonString(response, status, writeJson(body));
}

/** Ends a response with a body that is already serialized. */
export function sendJsonString(response: Response, status: number, json: string): void {
  response.statusCode = status;
  response.setHeader('Content-Type', JSON_TYPE);
  response.setHeader('Content-Length', Buffer.byteLength(json));
  response.end(json);
}

/**
 * Replaces Express's `json` for the handlers of extensions, so that large floats are written exactly. It keeps a type
 * that is already set, and leaves answers without a body to Express.
 */
export function answerJson(this: Response, body?: unknown): Response {
  const { statusCode } = this;
  if (body === undefined || statusCode < 200 || statusCode === 204 || statusCode === 304) {
    return express.response.json.call(this, body);
  }
  const json = writeJson(body);
  if (!this.hasHeader('Content-Type')) this.setHeader('Content-Type', JSON_TYPE);
  this.setHeader('Content-Length', Buffer.byteLength(json));
  return this.end(json);
}
