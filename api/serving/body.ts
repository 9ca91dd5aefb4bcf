import type { IncomingMessage } from 'node:http';
import type { Issue } from '../../domain/errors.ts';
import { lostIssue, lostNumbers } from '../../domain/exact-numbers.ts';
import { start } from '../../domain/pipeline/size.ts';
import { HttpError, badRequest } from '../errors.ts';

const JSON_TYPE = /^application\/(?:[a-z0-9.-]+\+)?json$/i;
const UTF_8 = /^"?utf-?8"?$/i;

/** How deep a body may be nested. What goes through it later does so by recursion. */
const MAX_DEPTH = 64;

/** Most issues that an error lists, and the longest path of a field in one. */
const MOST_ISSUES = 100;
const LONGEST_FIELD = 200;

/**
 * Reads a request's body as JSON. It is read here and not by a middleware before the routes, because who may
 * not call an endpoint is told so before anything is said of the body. What is left unread is read and
 * forgotten by `node:http` after the answer, so that the client gets to see it and the connection stays sound.
 *
 * @returns undefined where there is no body
 * @throws HttpError 413 over the limit, 415 for what is not JSON in UTF-8, 400 for broken JSON, and for what
 *   JSON can say but the service can't keep: a key `__proto__`, deep nesting, and a number that JavaScript cannot
 *   represent (see {@link lostNumbers})
 */
export async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const declared = request.headers['content-length'];
  const chunked = request.headers['transfer-encoding'] !== undefined;
  if (!chunked && (declared === undefined || declared === '0')) return undefined;
  if (Number(declared) > limit) throw tooLarge(limit);
  const refusal = refusalOfType(request);
  // A body of unknown length may turn out to be none, which needs no type.
  if (refusal !== null && !chunked) throw refusal;
  const bytes = await readBytes(request, limit);
  if (bytes.length === 0) return undefined;
  if (refusal !== null) throw refusal;
  const text = textOf(bytes);
  const body = parse(text);
  checkTree(body, []);
  checkNumbers(text);
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

/** Whether a media type is JSON in UTF-8. Of its parameters only `charset` says something of a body (RFC 8259). */
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
      // What still comes is read and forgotten, so that the client gets to read the answer.
      chunks = [];
      request.off('data', onData);
      request.resume();
      reject(tooLarge(limit));
    };
    let whole = false;
    const onEarlyEnd = (): void => {
      if (!whole) reject(endedEarly());
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

/** @throws HttpError 400 for what is not UTF-8 */
export function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw badRequest([{ field: 'body', issue: 'is not UTF-8' }]);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const issue = `is not JSON: ${error instanceof Error ? error.message : String(error)}`;
    throw badRequest([{ field: 'body', issue }]);
  }
}

/** Goes through a body once, whatever its schema: its own depth is the first thing that is bounded. */
function checkTree(value: unknown, path: string[]): void {
  if (typeof value !== 'object' || value === null) return;
  if (path.length === MAX_DEPTH) throw fault([], `is nested deeper than ${MAX_DEPTH} levels`);
  for (const [key, child] of Object.entries(value)) {
    path.push(key);
    // It could change an object's prototype further on.
    if (key === '__proto__') throw fault(path, 'is not a name that a field may have');
    checkTree(child, path);
    path.pop();
  }
}

/** @throws HttpError 400 for numbers that would be stored as others */
function checkNumbers(text: string): void {
  const [first, ...rest] = lostNumbers(text)
    .slice(0, MOST_ISSUES)
    .map((lost): Issue => {
      const field = start(lost.path.join('.') || 'body', LONGEST_FIELD);
      return { field, issue: lostIssue(lost) };
    });
  if (first !== undefined) throw badRequest([first, ...rest]);
}

const fault = (path: readonly string[], issue: string): HttpError =>
  badRequest([{ field: path.join('.') || 'body', issue }]);

const endedEarly = (): HttpError => badRequest([{ field: 'body', issue: 'ended early' }]);

const tooLarge = (limit: number): HttpError =>
  new HttpError('payload_too_large', `the body is larger than ${limit} bytes`, { limit });
