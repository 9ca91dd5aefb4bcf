import { parseKeepingDigits } from '../../domain/exact-numbers.ts';
import { start } from '../../domain/pipeline/size.ts';
import type { ReadBody } from '../http/read-body.ts';
import { nearestTextOf, textOf } from '../http/text.ts';

/** Characters of a server's name for a coding that a message tells. */
const MOST_CODING = 100;

/** Statuses of the 4xx range that may pass. */
const passing4xx = new Set([408, 425, 429]);

/** Whether a status that was not expected may be another one next time. */
export function mayPass(status: number): boolean {
  return status < 400 || status >= 500 || passing4xx.has(status);
}

/**
 * A body as a JSON value: parsed where it is JSON, text where it is text ({@link textOf}), else Base64; null where it is
 * empty. One that is still in a content coding has no charset that counts, and says which coding that is.
 * A number that JavaScript cannot represent is a string of its digits, and `warnings` name it.
 */
export function decodeBody(
  { bytes, truncated, coding }: Omit<ReadBody, 'fault'>,
  contentType: string,
): {
  readonly body: unknown;
  readonly body_encoding?: 'base64';
  readonly content_encoding?: string;
  readonly truncated?: true;
  readonly warnings?: readonly string[];
} {
  const about = {
    ...(coding === null ? {} : { content_encoding: coding }),
    ...(truncated ? { truncated: true as const } : {}),
  };
  if (bytes.length === 0) return { body: null, ...about };
  const text = textOf(bytes, coding === null ? contentType : '', { isCut: truncated });
  if (text === null) {
    return { body: bytes.toString('base64'), body_encoding: 'base64', ...about };
  }
  if (!truncated && /[/+]json\b/i.test(contentType)) {
    try {
      const { value, warnings } = parseKeepingDigits(text);
      return { body: value, ...(warnings.length === 0 ? {} : { warnings }), ...about };
    } catch {
      return { body: text, ...about };
    }
  }
  return { body: text, ...about };
}

/** A body for an error's message; where it is in a coding that is not known, which that is. */
export function bodyForMessage(
  { bytes, coding }: Pick<ReadBody, 'bytes' | 'coding'>,
  contentType: string,
): string {
  if (coding === null) return nearestTextOf(bytes, contentType);
  return `(a body in Content-Encoding ${start(coding, MOST_CODING)})`;
}

/**
 * Headers by name in lower case. Several of one name are joined by commas (RFC 9110, 5.3), but for `set-cookie`: it has
 * commas of its own, and several are a list.
 */
export function plainHeaders(
  headers: Readonly<Record<string, readonly string[] | undefined>>,
): Record<string, string | readonly string[]> {
  const plain = Object.entries(headers).map(([name, values = []]) => [
    name,
    name === 'set-cookie' && values.length > 1 ? values : values.join(', '),
  ]);
  return Object.fromEntries(plain) as Record<string, string | readonly string[]>;
}
