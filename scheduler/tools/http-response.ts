import type { Dispatcher } from 'undici';

/** Most bytes of a response that are read. */
const MAX_RESPONSE_BYTES = 1024 * 1024;

/** Statuses of the 4xx range that may pass. */
const passing4xx = new Set([408, 425, 429]);

/** Whether a status that was not expected may be another one next time. */
export function mayPass(status: number): boolean {
  return status < 400 || status >= 500 || passing4xx.has(status);
}

/**
 * Reads `Retry-After`: seconds, or a date.
 * @returns milliseconds from now, up to a day; undefined when there is none or it makes no sense
 */
export function retryAfterMs(value: string | undefined, now: number): number | undefined {
  if (value === undefined) return undefined;
  const text = value.trim();
  const milliseconds = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  if (Number.isNaN(milliseconds)) return undefined;
  return Math.min(Math.max(0, milliseconds), 86_400_000);
}

/** Reads a body up to the limit; the rest is not fetched. */
export async function readBody(
  body: Dispatcher.ResponseData['body'],
): Promise<{ readonly bytes: Buffer; readonly truncated: boolean }> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const room = MAX_RESPONSE_BYTES - length;
    chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    length += chunk.length;
    // Leaving the loop destroys the stream, and with it the connection.
    if (length > MAX_RESPONSE_BYTES) return { bytes: Buffer.concat(chunks), truncated: true };
  }
  return { bytes: Buffer.concat(chunks), truncated: false };
}

/**
 * A body as a JSON value: parsed where it is JSON, text where it is text in UTF-8 or in the charset that the type names,
 * else Base64; null where it is empty.
 */
export function decodeBody(
  { bytes, truncated }: { readonly bytes: Buffer; readonly truncated: boolean },
  contentType: string,
): { readonly body: unknown; readonly body_encoding?: 'base64'; readonly truncated?: true } {
  const cut = truncated ? { truncated: true as const } : {};
  if (bytes.length === 0) return { body: null };
  // Many say that it is Latin-1, and send UTF-8.
  const text =
    textOf(bytes, truncated, 'utf-8') ?? textOf(bytes, truncated, charsetOf(contentType));
  if (text === null) {
    return { body: bytes.toString('base64'), body_encoding: 'base64', ...cut };
  }
  if (!truncated && /[/+]json\b/i.test(contentType)) {
    try {
      return { body: JSON.parse(text) as unknown };
    } catch {
      return { body: text };
    }
  }
  return { body: text, ...cut };
}

/** Null where the bytes are no text of the charset, or nobody says which that is or knows it. */
function textOf(bytes: Buffer, truncated: boolean, charset: string | undefined): string | null {
  if (charset === undefined) return null;
  try {
    // Half a character at the cut is no sign of a binary body.
    return new TextDecoder(charset, { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return null;
  }
}

function charsetOf(contentType: string): string | undefined {
  return /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(contentType)?.[1];
}

/** Headers by name in lower case; several of one name are joined, as Node does. */
export function plainHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const plain = Object.entries(headers).map(([name, value = '']) => [
    name,
    Array.isArray(value) ? value.join(', ') : value,
  ]);
  return Object.fromEntries(plain) as Record<string, string>;
}
