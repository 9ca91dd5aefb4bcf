import type { IncomingMessage } from 'node:http';
import { codingsOf, decodeContent, type Bytes } from './content-coding.ts';
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
  const codings = codingsOf(answer.headers['content-encoding']);
  if (codings.length === 0) return plainBody(answer.body, most);
  let isCut = false;
  const bound = (source: Bytes): Bytes => upTo(most + FRAME, source, () => (isCut = true));
  const { bytes: decoded, left } = decodeContent(answer.body, codings, bound);
  const kept = new Kept(most);
  let fault: Error | null = null;
  try {
    for await (const chunk of decoded) {
      // Leaving the loop destroys the stream, and with it the connection.
      if (!kept.take(chunk) || isCut) break;
    }
  } catch (error) {
    // A coding that was cut is not valid any more.
    if (!isCut) fault = faultOf(error);
  }
  const coding = left.length === 0 ? null : left.join(', ');
  return { bytes: kept.bytes, truncated: isCut || kept.isFull, coding, fault };
}

/** By events, which cost a third of an iterator. */
function plainBody(body: IncomingMessage, most: number): Promise<ReadBody> {
  const kept = new Kept(most);
  return new Promise((resolve) => {
    const end = (fault: Error | null): void => {
      resolve({ bytes: kept.bytes, truncated: kept.isFull, coding: null, fault });
    };
    body.on('data', (chunk: Buffer) => {
      if (kept.take(chunk)) return;
      body.destroy();
      end(null);
    });
    body.once('end', () => end(null));
    body.once('error', (error) => end(kept.isFull ? null : faultOf(error)));
    // Destroyed without an error, before its end; afterwards this changes nothing.
    body.once('close', () => end(faultOf(new Error('aborted'))));
    // It may have been before anybody listened.
    if (body.destroyed && !body.readableEnded) end(faultOf(body.errored ?? new Error('aborted')));
  });
}

/** The beginning of a body. */
class Kept {
  readonly #most: number;
  readonly #chunks: Buffer[] = [];
  #length = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** @returns false where there was more than is kept */
  take(chunk: Buffer): boolean {
    const room = this.#most - this.#length;
    if (room > 0) this.#chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    this.#length += chunk.length;
    return !this.isFull;
  }

  /** There was more. */
  get isFull(): boolean {
    return this.#length > this.#most;
  }

  get bytes(): Buffer {
    const [only = Buffer.alloc(0)] = this.#chunks;
    return this.#chunks.length > 1 ? Buffer.concat(this.#chunks) : only;
  }
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
  if (error.message !== 'aborted') return error;
  const message = 'the connection was closed before the end of the answer';
  return new HttpFailure(message, { retryable: true, code: 'ECONNRESET', cause: error });
}
