import { parseKeepingDigits } from '../../domain/exact-numbers.ts';
import { truncateString } from '../../domain/pipeline/json-size.ts';
import type { BodyContent } from '../http/read-body.ts';
import { decodeTextLossy, decodeText } from '../http/charset.ts';

/** Characters of a content coding that a message quotes. */
const MAX_CODING_LENGTH = 100;

const retryable4xx = new Set([408, 425, 429]);

/** Whether a request with this unexpected status may succeed when it is retried. */
export function isRetryableStatus(status: number): boolean {
  return status < 400 || status >= 500 || retryable4xx.has(status);
}

/**
 * A body as a JSON value: parsed if it is JSON, a string if it is text ({@link decodeText}), null if empty, otherwise
 * Base64. `content_encoding` names a coding that could not be decoded. A number that JavaScript cannot represent
 * becomes a string of its digits, named in `warnings`.
 */
export function decodeBody(
  { bytes, truncated, coding }: Omit<BodyContent, 'fault'>,
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
  const text = decodeText(bytes, coding === null ? contentType : '', { isCut: truncated });
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

/** A body for an error's message. If its content coding is unknown, the name of that coding. */
export function bodyForMessage(
  { bytes, coding }: Pick<BodyContent, 'bytes' | 'coding'>,
  contentType: string,
): string {
  if (coding === null) return decodeTextLossy(bytes, contentType);
  return `(body with Content-Encoding ${truncateString(coding, MAX_CODING_LENGTH)})`;
}

/**
 * Headers by lower-case name. Repeated ones are joined by commas (RFC 9110, 5.3), except `set-cookie`, whose values may
 * contain commas: they become a list.
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
