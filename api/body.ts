import type { IncomingMessage } from 'node:http';
import { HttpError, badRequest } from './errors.ts';

const JSON_TYPE = /^application\/(?:[a-z0-9.+-]+\+)?json *(?:;|$)/i;

/**
 * Reads a request's body as JSON. It is read here and not by a middleware before the routes, because who may
 * not call an endpoint is told so before anything is said of the body.
 *
 * @returns undefined where there is no body
 * @throws HttpError 413 over the limit, 415 for what is not JSON, 400 for broken JSON
 */
export async function readJson(request: IncomingMessage, limit: number): Promise<unknown> {
  const declared = request.headers['content-length'];
  const chunked = request.headers['transfer-encoding'] !== undefined;
  if (!chunked && (declared === undefined || declared === '0')) return undefined;
  if (Number(declared) > limit) throw tooLarge(limit);
  const type = request.headers['content-type'];
  if (type === undefined || !JSON_TYPE.test(type)) {
    throw new HttpError('unsupported_media_type', 'the body must be application/json', {
      content_type: type ?? null,
    });
  }
  const text = await readText(request, limit);
  if (text === '') return undefined;
  try {
    return JSON.parse(text, refusePrototypeKeys);
  } catch (error) {
    const issue = error instanceof SyntaxError ? `is not JSON: ${error.message}` : String(error);
    throw badRequest([{ field: 'body', issue }]);
  }
}

function readText(request: IncomingMessage, limit: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > limit) {
        // What still comes is read and forgotten, so that the client gets to read the answer.
        request.removeAllListeners('data');
        request.resume();
        reject(tooLarge(limit));
      } else {
        chunks.push(chunk);
      }
    });
    request.on('end', () => {
      try {
        resolve(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)));
      } catch {
        reject(badRequest([{ field: 'body', issue: 'is not UTF-8' }]));
      }
    });
    request.on('error', reject);
    request.on('aborted', () => reject(badRequest([{ field: 'body', issue: 'ended early' }])));
  });
}

/** A key that could change an object's prototype further on is a fault, not data. */
function refusePrototypeKeys(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new SyntaxError('the key __proto__ is not allowed');
  return value;
}

const tooLarge = (limit: number): HttpError =>
  new HttpError('payload_too_large', `the body is larger than ${limit} bytes`, { limit });
