import { PipelineFault } from './fault.ts';
import { setOwn } from './own.ts';

/** Largest result of a step, as JSON text; what is larger is cut. Together with its log it fits an event. */
export const MAX_RESULT_BYTES = 256 * 1024;

/**
 * What the steps of a run leave in all, as JSON text: results, errors, logs. Its worker holds all of that in memory, and
 * so does whoever shows the run; a `for_each` of 10,000 items would else be gigabytes. Room for four outputs.
 */
export const MAX_RUN_BYTES = 16 * 1024 * 1024;

/**
 * What a step is given, and what an expression gives: as much as the steps of a run leave. Characters of JSON text, about.
 */
export const MOST_GIVEN = MAX_RUN_BYTES;

/** What any value counts for, and a text or a name besides its own. Characters. */
const EACH = 8;

/** Items and members of a result in all that may be looked at: no value that a step is given has as many. */
const MOST_MEMBERS = MOST_GIVEN / EACH;

/** Bytes of JSON text that one of them takes at least, with its comma. */
const LEAST_MEMBER = 2;

/** Deeper values are measured by writing them out, which also finds cycles. */
const MOST_DEPTH = 100;

/** Levels of a result: whoever reads it goes down in calls, and one of a few thousand would break that off. */
const MOST_LEVELS = 500;

/** A value as JSON, with an upper bound of its length in bytes. */
export interface Measured {
  readonly value: unknown;
  readonly bytes: number;
}

/**
 * A value as it will be after JSON: itself if it is plain JSON, else a copy without what JSON can't hold.
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
 * To be asked before anything else goes down into a value that a tool gave.
 * @returns the value, or what stands for one that has more items and members than may be looked at: a list of four
 *   thousand million, all but one of them missing, is quickly made. Its size is the least that it can have
 * @throws PipelineFault for one of more than 500 levels, as one is that holds itself
 */
export function withinReach(value: unknown): unknown {
  const members = countMembers(value, MOST_LEVELS, 0);
  return members > MOST_MEMBERS ? bareMarker(members * LEAST_MEMBER) : value;
}

/**
 * How long a value of JSON is when it is written out, about; looks no further than where that is more than `most`. What
 * stands in several places counts in each: what an expression gives may be small in memory, and its text without end.
 */
export function writtenLength(value: unknown, most: number): number {
  let length = 0;
  const open: object[] = [];
  const count = (each: unknown): void => {
    length += EACH + (typeof each === 'string' ? each.length : 0);
    if (typeof each === 'object' && each !== null) open.push(each);
  };
  count(value);
  for (let each = open.pop(); each !== undefined && length <= most; each = open.pop()) {
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

/** Cuts what is over a limit, and says so in what is left. Nothing happens to what is within. */
export function cutTo(limit: number, measured: Measured): Measured {
  if (measured.bytes <= limit) return measured;
  const bytes = jsonBytes(measured.value);
  if (bytes <= limit) return { value: measured.value, bytes };
  const value = cut(measured.value, bytes, limit);
  return { value, bytes: jsonBytes(value) };
}

/** Length of a value's JSON text in UTF-8. */
export function jsonBytes(value: unknown): number {
  return utf8Length(JSON.stringify(value ?? null));
}

/** What stands for a value that was cut away as a whole. */
export function cutMarker(value: unknown, bytes: number): object {
  return markerOf(JSON.stringify(value), bytes);
}

/** The same of a value that is written out already. */
export function markerOf(text: string, bytes: number): object {
  return { ...bareMarker(bytes), preview: start(text, 1000) };
}

/** The same where there is no room for its beginning either. */
export function bareMarker(bytes: number): {
  readonly truncated: true;
  readonly size_bytes: number;
} {
  return { truncated: true, size_bytes: bytes };
}

/** The first characters of a text, not ending in half of a pair. */
export function start(text: string, length: number): string {
  return text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '');
}

function cut(value: unknown, bytes: number, limit: number): unknown {
  if (typeof value === 'string') return cutText(value, bytes, limit);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return cutMarker(value, bytes);
  }
  return cutMembers(value, bytes, limit) ?? cutMarker(value, bytes);
}

function cutText(text: string, bytes: number, limit: number): string {
  const note = `… [cut: ${bytes} bytes in all]`;
  // Characters differ in length, so the share that fits is found in a few tries.
  let length = Math.floor((text.length * limit) / bytes);
  for (;;) {
    const short = start(text, Math.max(0, length - note.length - 2)) + note;
    if (length <= 0 || jsonBytes(short) <= limit) return short;
    length = Math.floor(length * 0.8);
  }
}

/** Cuts the largest members of an object until it fits: a response keeps its status when its body goes. */
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

/** Bytes of a text. */
export function utf8Length(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** The items and members of a value and of all within it, with those counted before; may stop where they are too many. */
function countMembers(value: unknown, levels: number, before: number): number {
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return before;
  if (levels === 0) {
    throw new PipelineFault(`it is nested deeper than ${MOST_LEVELS} levels, or holds itself`);
  }
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let count = before + members.length;
  for (const member of members) {
    if (count > MOST_MEMBERS) break;
    count = countMembers(member, levels - 1, count);
  }
  return count;
}

/** Upper bound of the JSON text's bytes; NaN where a value is not plain JSON. */
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
  if (depth > MOST_DEPTH || 'toJSON' in value) return NaN;
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
