import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Transform } from 'node:stream';

export type Bytes = AsyncIterable<Buffer>;

const MAX_CODINGS = 4;

/** The supported content codings (RFC 9110, 8.4.1). */
const decoders: Readonly<Record<string, (source: Bytes) => Bytes>> = {
  gzip: (source) => decoded(source, 'gzip', () => createGunzip()),
  deflate: (source) => decoded(source, 'deflate', inflating),
  br: (source) => decoded(source, 'br', () => createBrotliDecompress()),
};

/** A body does not match its `Content-Encoding`. */
class ContentCodingError extends Error {
  readonly code = 'BAD_CONTENT_ENCODING';

  constructor(coding: string, cause: Error) {
    super(`the response body is not valid ${coding}: ${cause.message}`, { cause });
    this.name = 'ContentCodingError';
  }
}

/** The codings of a body, in the order in which they were applied; `identity` is none. */
export function codingsOf(values: readonly string[] = []): readonly string[] {
  return values
    .join(',')
    .split(',')
    .map((each) => each.trim().toLowerCase())
    .map((each) => (each === 'x-gzip' ? 'gzip' : each))
    .filter((each) => each !== '' && each !== 'identity');
}

/**
 * Decodes a body, from the last applied coding to the first unknown one.
 * @param bound limits the bytes of every stage
 * @returns the bytes, and the codings left in them
 */
export function decodeContent(
  source: Bytes,
  codings: readonly string[],
  bound: (bytes: Bytes) => Bytes,
): { readonly bytes: Bytes; readonly left: readonly string[] } {
  let bytes = source;
  const left = [...codings];
  for (let undone = 0; undone < MAX_CODINGS; undone += 1) {
    const coding = left.at(-1);
    const decoder = coding === undefined ? undefined : decoders[coding];
    if (decoder === undefined) break;
    bytes = decoder(bound(bytes));
    left.pop();
  }
  return { bytes, left };
}

/** An empty body is valid in any coding: responses to HEAD, and 304, have only the header. */
async function* decoded(
  source: Bytes,
  coding: string,
  decoderFor: (head: Buffer) => Transform,
): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  try {
    let head = Buffer.alloc(0);
    while (head.length < 2) {
      const { value, done } = await chunks.next();
      if (done === true) break;
      head = Buffer.concat([head, value]);
    }
    if (head.length === 0) return;
    yield* through(decoderFor(head), rejoined(head, chunks), coding);
  } finally {
    await chunks.return?.();
  }
}

async function* through(decoder: Transform, coded: Bytes, coding: string): AsyncGenerator<Buffer> {
  let sourceFault: unknown;
  const watched = (async function* (): AsyncGenerator<Buffer> {
    try {
      yield* coded;
    } catch (error) {
      sourceFault = error;
      throw error;
    }
  })();
  // Errors of the source also end the decoder, and are handled there.
  const feeding = pipeline(watched, decoder).catch(() => {});
  try {
    yield* decoder as AsyncIterable<Buffer>;
  } catch (error) {
    if (sourceFault !== undefined) throw sourceFault as Error;
    throw new ContentCodingError(coding, error as Error);
  } finally {
    decoder.destroy();
    await feeding;
  }
}

async function* rejoined(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  for (;;) {
    const { value, done } = await rest.next();
    if (done === true) return;
    yield value;
  }
}

/** `deflate` means zlib's format (RFC 1950), but some servers send raw deflate (RFC 1951) without its header. */
function inflating(head: Buffer): Transform {
  const [first = 0, second = 0] = head;
  const isZlib = (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
  return isZlib ? createInflate() : createInflateRaw();
}
