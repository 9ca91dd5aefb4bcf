import { isJsonObject, type JsonObject, type JsonValue } from '../domain/json.ts';
import { setOwn } from '../domain/pipeline/own.ts';
import { bareMarker, markerOf } from '../domain/pipeline/size.ts';
import type { Cut } from './read-model.ts';

/** UTF-8 bytes of a UTF-16 unit at most. */
const MOST_BYTES_EACH = 3;

/**
 * A document's JSON text as a list shows it: each value that the cut names and that is over its limit is replaced by
 * `{truncated: true, size_bytes}`. `size_bytes` counts the value's JSON text in UTF-8.
 *
 * @param text of a JSON object; returned as it is where it is within the limit
 */
export function cutDocument(text: string, cut: Cut): string {
  if (!isOver(text, cut.over)) return text;
  const whole = JSON.parse(text) as JsonObject;
  const without = new Set(cut.without);
  let document: JsonValue =
    without.size === 0
      ? whole
      : Object.fromEntries(Object.entries(whole).filter(([field]) => !without.has(field)));
  for (const { path, preview } of cut.values) {
    document = replaced(document, path, (value) => cutValue(value, cut.over, preview));
  }
  return JSON.stringify(document);
}

/** Whether a text has more bytes in UTF-8. Most are so short that they need not be counted. */
function isOver(text: string, bytes: number): boolean {
  if (text.length > bytes) return true;
  return text.length * MOST_BYTES_EACH > bytes && Buffer.byteLength(text) > bytes;
}

/**
 * A value, or `{truncated: true, size_bytes}` in its place where its JSON text has more bytes in UTF-8.
 * @param preview whether what stands for it has its beginning
 */
export function cutValue(value: JsonValue, over: number, preview = false): JsonValue {
  if (typeof value !== 'object' && typeof value !== 'string') return value;
  const text = JSON.stringify(value);
  if (!isOver(text, over)) return value;
  const bytes = Buffer.byteLength(text);
  return (preview ? markerOf(text, bytes) : bareMarker(bytes)) as JsonObject;
}

/** A value with what stands at a path replaced; the value itself where nothing stands there. */
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
