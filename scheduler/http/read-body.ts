import { codingsOf, decodeContent, type Bytes } from './content-coding.ts';
import type { HttpResponse } from './http-client.ts';
import { HttpRequestError } from './http-request-error.ts';

/** By how much coded bytes may exceed the decoded ones: the overhead of a coding. */
const CODING_OVERHEAD = 64 * 1024;

export interface BodyContent {
  readonly bytes: Buffer;
  /** The body had more bytes than the limit. */
  readonly truncated: boolean;
  /** The unknown `Content-Encoding` that the bytes are in; null: none. */
  readonly coding: string | null;
  /** The error that ended the body; null: none. */
  readonly fault: Error | null;
}

/**
 * Reads and decodes a body up to a limit; the rest is not fetched. The limit holds for the decoded bytes and, nearly, for
 * the coded ones: a small body may decode to gigabytes, and a large one to nothing.
 * @param limit bytes
 */
export async function readBody(answer: HttpResponse, limit: number): Promise<BodyContent> {
  let isCut = false;
  const bound = (source: Bytes): Bytes =>
    upTo(limit + CODING_OVERHEAD, source, () => (isCut = true));
  const codings = codingsOf(answer.headers['content-encoding']);
  const { bytes: decoded, left } = decodeContent(answer.body, codings, bound);
  const chunks: Buffer[] = [];
  let length = 0;
  let fault: Error | null = null;
  try {
    for await (const chunk of decoded) {
      chunks.push(chunk.subarray(0, limit - length));
      length += chunk.length;
      // Leaving the loop destroys the stream, and with it the connection.
      if (length > limit || isCut) break;
    }
  } catch (error) {
    // A coding that was cut is invalid.
    if (!isCut) fault = faultOf(error);
  }
  const coding = left.length === 0 ? null : left.join(', ');
  return { bytes: Buffer.concat(chunks), truncated: isCut || length > limit, coding, fault };
}

async function* upTo(limit: number, source: Bytes, onCut: () => void): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const chunk of source) {
    length += chunk.length;
    if (length > limit) return onCut();
    yield chunk;
  }
}

function faultOf(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  const isClosed = 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
  if (error.message !== 'aborted' && !isClosed) return error;
  const message = 'the connection was closed before the end of the answer';
  return new HttpRequestError(message, { retryable: true, code: 'ECONNRESET', cause: error });
}
