import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';
import type { Transform } from 'node:stream';

/** Bytes, as they come. */
export type Bytes = AsyncIterable<Buffer>;

/** More than this has nobody a use for; each takes memory. What is beyond stays as it is. */
const MOST_CODINGS = 4;

/** The content codings that are undone (RFC 9110, 8.4.1). */
const decoders: Readonly<Record<string, (source: Bytes) => Bytes>> = {
  gzip: (source) => decoded(source, 'gzip', () => createGunzip()),
  deflate: (source) => decoded(source, 'deflate', inflating),
  br: (source) => decoded(source, 'br', () => createBrotliDecompress()),
};

/** A body that is not what its `Content-Encoding` says. */
export class ContentCodingError extends Error {
  readonly code = 'BAD_CONTENT_ENCODING';

  constructor(coding: string, cause: Error) {
    super(`the body of the answer is not valid ${coding}: ${cause.message}`, { cause });
    this.name = 'CodingFault';
  }
}

/** The codings of a body, in the order in which they were applied; `identity` is none. */
export function codingsOf(values: readonly string[] = []): readonly string[] {
  return values
    .join(',')
    .split(',')
    .map((each) =>
      each
        .trim()
        .toLowerCase()
        .replace(/^x-(?=gzip$)/, ''),
    )
    .filter((each) => each !== '' && each !== 'identity');
}

/**
 * Undoes codings, from the last that was applied to the first that is not known.
 * @param bound put around the bytes of every stage, so that none of them is without end
 * @returns the bytes, and the codings that are left in them
 */
export function decodeContent(
  source: Bytes,
  codings: readonly string[],
  bound: (bytes: Bytes) => Bytes,
): { readonly bytes: Bytes; readonly left: readonly string[] } {
  let bytes = source;
  const left = [...codings];
  for (let undone = 0; undone < MOST_CODINGS; undone += 1) {
    const coding = left.at(-1);
    const decoder = coding === undefined ? undefined : decoders[coding];
    if (decoder === undefined) break;
    bytes = decoder(bound(bytes));
    left.pop();
  }
  return { bytes, left };
}

/** Nothing in coded form stands for nothing too: answers to HEAD, and with 304, have the header alone. */
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
  // What goes wrong ends the decoder, too, and is met there.
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

/** Meant is zlib's format (RFC 1950); some servers send the bare one (RFC 1951), which has no such first bytes. */
function inflating(head: Buffer): Transform {
  const [first = 0, second = 0] = head;
  const isZlib = (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
  return isZlib ? createInflate() : createInflateRaw();
}
