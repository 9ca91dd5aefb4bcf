import type { IncomingMessage } from 'node:http';
import type { Issue } from '../../domain/errors.ts';
import { lostIssue, lostNumbers } from '../../domain/exact-numbers.ts';
import { truncateString } from '../../domain/pipeline/json-size.ts';
import { HttpError, badRequest } from '../errors.ts';

const JSON_TYPE = /^application\/(?:[a-z0-9.-]+\+)?json$/i;
const UTF_8 = /^"?utf-?8"?$/i;

/** The most levels of nesting. They are limited because later code walks the body by recursion. */
const MAX_DEPTH = 64;

/** Limits of an error: its issues, and the characters of a field's path. */
const MAX_ISSUES = 100;
const MAX_FIELD_LENGTH = 200;

/**
 * Reads a request's body as JSON, after the caller was authenticated, so that a 401 or 403 precedes all errors of the
 * body. `node:http` discards the unread rest of a body, so that the client receives the response.
 * @returns undefined without a body
 * @throws HttpError 413 over the limit; 415 for any other type than JSON in UTF-8; 400 for broken JSON, a key
 *   `__proto__`, deep nesting, and numbers that JavaScript cannot represent (see {@link lostNumbers})
 */
export async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const declared = request.headers['content-length'];
  const chunked = request.headers['transfer-encoding'] !== undefined;
  if (!chunked && (declared === undefined || declared === '0')) return undefined;
  if (Number(declared) > limit) throw tooLarge(limit);
  const refusal = refusalOfType(request);
  // A chunked body may turn out to be empty, and an empty body needs no type.
  if (refusal !== null && !chunked) throw refusal;
  const bytes = await readBytes(request, limit);
  if (bytes.length === 0) return undefined;
  if (refusal !== null) throw refusal;
  const json = decodeUtf8(bytes);
  const body = parse(json);
  checkTree(body, []);
  checkNumbers(json);
  return body;
}

function refusalOfType({ headers }: IncomingMessage): HttpError | null {
  const type = headers['content-type'];
  const encoding = headers['content-encoding'] ?? 'identity';
  if (type !== undefined && isJson(type) && encoding.toLowerCase() === 'identity') return null;
  return new HttpError('unsupported_media_type', 'the body must be application/json in UTF-8', {
    content_type: type ?? null,
    content_encoding: encoding,
  });
}

/** Whether a media type is JSON in UTF-8; its only meaningful parameter is `charset` (RFC 8259). */
function isJson(type: string): boolean {
  const [name, ...parameters] = type.split(';').map((part) => part.trim());
  const isUtf8 = parameters.every((parameter) => {
    const [key, value = ''] = parameter.split('=', 2);
    return key?.toLowerCase() !== 'charset' || UTF_8.test(value);
  });
  return isUtf8 && JSON_TYPE.test(name ?? '');
}

/** @throws HttpError 413 over the limit, 400 for a body that ends early */
export function readBytes(request: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let length = 0;
    const onData = (chunk: Buffer): void => {
      length += chunk.length;
      if (length <= limit) {
        chunks.push(chunk);
        return;
      }
      // The rest is discarded, so that the client receives the response.
      chunks = [];
      request.off('data', onData);
      request.resume();
      reject(tooLarge(limit));
    };
    let whole = false;
    const onEarlyEnd = (): void => {
      if (!whole) reject(fault([], 'ended early'));
    };
    request.on('data', onData);
    request.on('end', () => {
      whole = true;
      resolve(Buffer.concat(chunks));
    });
    request.on('error', onEarlyEnd);
    request.on('close', onEarlyEnd);
  });
}

/** @throws HttpError 400 for a body that is not UTF-8 */
export function decodeUtf8(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw fault([], 'is not UTF-8');
  }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw fault([], `is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Bounds the depth of a body, before its schema is applied. */
function checkTree(value: unknown, path: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  if (path.length === MAX_DEPTH) throw fault([], `is nested deeper than ${MAX_DEPTH} levels`);
  for (const [key, child] of Object.entries(value)) {
    path.push(key);
    // This key could replace an object's prototype later.
    if (key === '__proto__') throw fault(path, 'is not an allowed field name');
    checkTree(child, path);
    path.pop();
  }
}

/** @throws HttpError 400 for numbers that would be stored with another value */
function checkNumbers(json: string): void {
  const [first, ...rest] = lostNumbers(json)
    .slice(0, MAX_ISSUES)
    .map((lost): Issue => {
      const field = truncateString(lost.path.join('.') || 'body', MAX_FIELD_LENGTH);
      return { field, issue: lostIssue(lost) };
    });
  if (first !== undefined) throw badRequest([first, ...rest]);
}

const fault = (path: readonly string[], issue: string): HttpError =>
  badRequest([{ field: path.join('.') || 'body', issue }]);

const tooLarge = (limit: number): HttpError =>
  new HttpError('payload_too_large', `the body is larger than ${limit} bytes`, { limit });
