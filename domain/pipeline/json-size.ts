import { PipelineError } from './pipeline-error.ts';
import { setOwn } from './set-own.ts';

/** The most bytes of a step's result as JSON, so that it fits an event with its log. */
export const MAX_RESULT_BYTES = 256 * 1024;

/**
 * The most bytes of all results, errors and logs of a run as JSON. They are limited because the run's worker and
 * readers hold them in memory. Otherwise, a `for_each` of 10,000 items could take gigabytes. Room for four outputs.
 */
export const MAX_RUN_BYTES = 16 * 1024 * 1024;

/** The most characters (approximately, as JSON) of a step's input and of an expression's value. */
export const MAX_VALUE_LENGTH = MAX_RUN_BYTES;

/** Base size of any value or name, in characters. */
const BASE_SIZE = 8;

/** The most items and members of a result. No input of a step has that many. */
const MAX_MEMBERS = MAX_VALUE_LENGTH / BASE_SIZE;

/** The fewest bytes of an item or member as JSON, with its comma. */
const MIN_MEMBER_BYTES = 2;

/** Deeper values are measured by serializing them, which also detects cycles. */
const MAX_ESTIMATED_DEPTH = 100;

/** The most levels of a result. Recursive readers fail at a few thousand. */
const MAX_RESULT_LEVELS = 500;

/** A value as JSON, with an upper bound of its bytes. */
export interface Measured {
  readonly value: unknown;
  readonly bytes: number;
}

/**
 * The value after a round trip through JSON: itself if it is plain JSON, otherwise a copy.
 * @throws Error for a cycle or a BigInt
 */
export function toPlainJson(value: unknown): Measured {
  const bytes = bytesAtMost(value, 0);
  if (!Number.isNaN(bytes)) return { value, bytes };
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined) return { value: null, bytes: 4 };
  return { value: JSON.parse(text) as unknown, bytes: utf8Length(text) };
}

/**
 * Checks a tool's result before any code traverses it.
 * @returns the value, or a marker with its minimum size if it has too many items and members (a sparse list of billions
 *   is quickly made)
 * @throws PipelineError for more than 500 levels, such as in a cycle
 */
export function limitMembers(value: unknown): unknown {
  const members = countMembers(value, MAX_RESULT_LEVELS, 0);
  return members > MAX_MEMBERS ? markerWithoutPreview(members * MIN_MEMBER_BYTES) : value;
}

/**
 * The approximate length of a value as JSON; stops counting beyond `max`. A value that occurs in
 * several places counts in each: it may be small in memory and huge as JSON.
 */
export function approximateLength(value: unknown, max: number): number {
  let length = 0;
  const pending: object[] = [];
  const count = (each: unknown): void => {
    length += BASE_SIZE + (typeof each === 'string' ? each.length : 0);
    if (typeof each === 'object' && each !== null) pending.push(each);
  };
  count(value);
  for (let each = pending.pop(); each !== undefined && length <= max; each = pending.pop()) {
    if (Array.isArray(each)) each.forEach(count);
    else {
      for (const [name, member] of Object.entries(each)) {
        length += name.length;
        count(member);
      }
    }
  }
  return length;
}

/** Truncates a value above a limit and marks it; other values stay unchanged. */
export function truncateTo(limit: number, measured: Measured): Measured {
  if (measured.bytes <= limit) return measured;
  const bytes = jsonBytes(measured.value);
  if (bytes <= limit) return { value: measured.value, bytes };
  const value = cut(measured.value, bytes, limit);
  return { value, bytes: jsonBytes(value) };
}

/** Bytes of a value as JSON in UTF-8. */
export function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value ?? null));
}

/** A marker that replaces a serialized value, with a preview. */
export function serializedMarker(text: string, bytes: number): object {
  return { ...markerWithoutPreview(bytes), preview: truncateString(text, 1000) };
}

/** A marker without a preview. */
export function markerWithoutPreview(bytes: number): {
  readonly truncated: true;
  readonly size_bytes: number;
} {
  return { truncated: true, size_bytes: bytes };
}

/** The first characters of a string, without half of a surrogate pair. */
export function truncateString(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}

function cut(value: unknown, bytes: number, limit: number): unknown {
  if (typeof value === 'string') return cutText(value, bytes, limit);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return serializedMarker(JSON.stringify(value), bytes);
  }
  return cutMembers(value, bytes, limit) ?? serializedMarker(JSON.stringify(value), bytes);
}

function cutText(text: string, bytes: number, limit: number): string {
  const note = `… [cut: ${bytes} bytes in all]`;
  // Characters differ in bytes, so try decreasing lengths.
  let length = Math.floor((text.length * limit) / bytes);
  for (;;) {
    const short = truncateString(text, Math.max(0, length - note.length - 2)) + note;
    if (length <= 0 || jsonBytes(short) <= limit) return short;
    length = Math.floor(length * 0.8);
  }
}

/** Truncates an object's largest members until it fits; a response keeps its status. */
function cutMembers(value: object, bytes: number, limit: number): object | null {
  const bySize = Object.entries(value)
    .map(([key, member]: [string, unknown]) => ({ key, member, size: jsonBytes(member) }))
    .sort((one, other) => other.size - one.size);
  const replaced = new Map<string, unknown>();
  let total = bytes + 20;
  for (const { key, member, size } of bySize) {
    if (total <= limit || size < 4096) break;
    const short = cut(member, size, Math.max(4096, limit - (total - size)));
    replaced.set(key, short);
    total += jsonBytes(short) - size;
  }
  if (total > limit) return null;
  const left: Record<string, unknown> = {};
  for (const [key, member] of Object.entries(value)) {
    setOwn(left, key, replaced.has(key) ? replaced.get(key) : member);
  }
  return { ...left, truncated: true };
}

/** Bytes of a string in UTF-8. */
export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** Counts the items and members of a value recursively, plus `before`; may stop above the limit. */
function countMembers(value: unknown, levels: number, before: number): number {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return before;
  if (levels === 0) {
    throw new PipelineError(
      `it is nested deeper than ${MAX_RESULT_LEVELS} levels, or contains itself`,
    );
  }
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let count = before + members.length;
  for (const member of members) {
    if (count > MAX_MEMBERS) break;
    count = countMembers(member, levels - 1, count);
  }
  return count;
}

/** An upper bound of a value's bytes as JSON; NaN if it is not plain JSON. */
function bytesAtMost(value: unknown, depth: number): number {
  switch (typeof value) {
    case 'string':
      return value.length * 6 + 2;
    case 'number':
      return Number.isFinite(value) ? 25 : NaN;
    case 'boolean':
      return 5;
    case 'object':
      break;
    default:
      return NaN;
  }
  if (value === null) return 4;
  if (depth > MAX_ESTIMATED_DEPTH || 'toJSON' in value) return NaN;
  let sum = 2;
  if (Array.isArray(value)) {
    for (const item of value) sum += bytesAtMost(item, depth + 1) + 1;
    return sum;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return NaN;
  for (const key of Object.keys(value)) {
    sum += key.length * 6 + 4 + bytesAtMost((value as Record<string, unknown>)[key], depth + 1);
  }
  return sum;
}
