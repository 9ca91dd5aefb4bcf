import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import { setOwn } from '../domain/pipeline/set-own.ts';
import { markerWithoutPreview, serializedMarker } from '../domain/pipeline/json-size.ts';
import type { Cut } from './read-model.ts';

/** UTF-8 bytes per UTF-16 unit, at most. */
const MAX_BYTES_PER_UNIT = 3;

/**
 * The JSON of a document as a list shows it: each value that the cut names becomes `{truncated: true, size_bytes}` if
 * its JSON exceeds the limit in UTF-8 bytes.
 *
 * @param text of a JSON object; returned unchanged within the limit
 */
export function cutDocument(text: string, cut: Cut): string {
  if (!exceeds(text, cut.maxBytes)) return text;
  const whole = JSON.parse(text) as JsonObject;
  const without = new Set(cut.omitted);
  let document: JsonValue =
    without.size === 0
      ? whole
      : Object.fromEntries(Object.entries(whole).filter(([field]) => !without.has(field)));
  for (const { path, preview } of cut.values) {
    document = replaced(document, path, (value) => cutValue(value, cut.maxBytes, preview));
  }
  return JSON.stringify(document);
}

/** Whether a string exceeds a number of UTF-8 bytes. Most are so short that they need not be counted. */
function exceeds(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  return text.length * MAX_BYTES_PER_UNIT > bytes && Buffer.byteLength(text) > bytes;
}

/**
 * A value, or `{truncated: true, size_bytes}` if its JSON exceeds a number of UTF-8 bytes.
 * @param preview whether the replacement keeps the beginning
 */
export function cutValue(value: JsonValue, over: number, preview = false): JsonValue {
  if (over === Infinity || (typeof value !== 'object' && typeof value !== 'string')) return value;
  const text = JSON.stringify(value);
  if (!exceeds(text, over)) return value;
  const bytes = Buffer.byteLength(text);
  return (preview ? serializedMarker(text, bytes) : markerWithoutPreview(bytes)) as JsonObject;
}

/** Like {@link cutValue}, for a value that is given as JSON. */
export function cutText(text: string, over: number): JsonValue {
  if (!exceeds(text, over)) return JSON.parse(text) as JsonValue;
  return markerWithoutPreview(Buffer.byteLength(text));
}

/** A value with the part at a path replaced; the value itself if nothing is there. */
function replaced(
  value: JsonValue,
  [step, ...rest]: readonly string[],
  by: (value: JsonValue) => JsonValue,
): JsonValue {
  if (step === undefined) return by(value);
  if (step === '*') {
    return Array.isArray(value) ? value.map((item) => replaced(item, rest, by)) : value;
  }
  if (!isJsonObject(value) || !Object.hasOwn(value, step)) return value;
  const copy: Record<string, JsonValue> = { ...value };
  setOwn(copy, step, replaced(value[step] ?? null, rest, by));
  return copy;
}
