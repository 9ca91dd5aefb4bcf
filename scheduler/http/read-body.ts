import { codingsOf, decode, type Bytes } from './content-coding.ts';
import type { HttpAnswer } from './http-client.ts';
import { HttpFailure } from './http-failure.ts';

/** By how much coded bytes may exceed what they stand for: the frame of a coding. */
const FRAME = 64 * 1024;

/** What was read of a body. */
export interface ReadBody {
  readonly bytes: Buffer;
  /** There was more. */
  readonly truncated: boolean;
  /** The `Content-Encoding` that the bytes are still in, as it is not known here; null: none. */
  readonly coding: string | null;
  /** What it broke off with; null: nothing. */
  readonly fault: Error | null;
}

/**
 * Reads a body without its content codings, up to a limit; the rest is not fetched. The limit is that of the decoded
 * bytes, and nearly that of the coded ones: a small answer can stand for gigabytes, and a long one for nothing.
 * @param most bytes
 */
export async function readBody(answer: HttpAnswer, most: number): Promise<ReadBody> {
  let isCut = false;
  const bound = (source: Bytes): Bytes => upTo(most + FRAME, source, () => (isCut = true));
  const codings = codingsOf(answer.headers['content-encoding']);
  const { bytes: decoded, left } = decode(answer.body, codings, bound);
  const coding = left.length === 0 ? null : left.join(', ');
  const chunks: Buffer[] = [];
  let length = 0;
  let fault: Error | null = null;
  try {
    for await (const chunk of decoded) {
      const room = most - length;
      chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
      length += chunk.length;
      // Leaving the loop destroys the stream, and with it the connection.
      if (length > most) isCut = true;
      if (isCut) break;
    }
  } catch (error) {
    // A coding that was cut is not valid any more.
    if (!isCut) fault = faultOf(error);
  }
  return { bytes: Buffer.concat(chunks), truncated: isCut, coding, fault };
}

async function* upTo(most: number, source: Bytes, onCut: () => void): AsyncGenerator<Buffer> {
  let length = 0;
  for await (const chunk of source) {
    length += chunk.length;
    if (length > most) return onCut();
    yield chunk;
  }
}

function faultOf(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (!('code' in error) || error.code !== 'ECONNRESET') return error;
  const message = 'the connection was closed before the end of the answer';
  return new HttpFailure(message, { retryable: true, code: 'ECONNRESET', cause: error });
}
