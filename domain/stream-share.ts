/** One of several shares of a log's streams: each stream is in one of them, with all of its events. */
export interface StreamShare {
  /** From 0. */
  readonly index: number;
  readonly of: number;
}

/** Of FNV-1a with 32 bits (http://www.isthe.com/chongo/tech/comp/fnv/), here of UTF-16 units. */
const OFFSET = 2_166_136_261;
const PRIME = 16_777_619;

/** Whether a stream is in a share, for an engine that tells streams apart by their names alone. */
export function isInShare(stream: string, { index, of }: StreamShare): boolean {
  let hash = OFFSET;
  for (let at = 0; at < stream.length; at += 1) {
    hash = Math.imul(hash ^ stream.charCodeAt(at), PRIME);
  }
  return (hash >>> 0) % of === index;
}
