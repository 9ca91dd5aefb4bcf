import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

/** One difference between two states of a record, at a dotted path such as `payload.pipeline.0.with.text`. */
export interface Change {
  readonly path: string;
  /** null also where there was nothing. */
  readonly before: JsonValue;
  /** null also where there is nothing any more. */
  readonly after: JsonValue;
}

/**
 * What differs between two states of a record, in the order of their fields. Objects are compared field by field
 * and lists of objects element by element, so that a change deep in a pipeline names its place; all else is given
 * whole. A record that came to be, or is gone, differs in each of its fields that is set.
 */
export function changesBetween(
  before: JsonObject | null,
  after: JsonObject | null,
): readonly Change[] {
  const changes: Change[] = [];
  if (before === null || after === null) {
    for (const field of fieldsOf(before ?? {}, after ?? {})) {
      compareWhole(field, fieldOf(before ?? {}, field), fieldOf(after ?? {}, field), changes);
    }
  } else {
    compareFields('', before, after, changes);
  }
  return changes;
}

function compare(path: string, before: JsonValue, after: JsonValue, into: Change[]): void {
  if (isJsonObject(before) && isJsonObject(after)) {
    compareFields(`${path}.`, before, after, into);
  } else if (isList(before) && isList(after) && [...before, ...after].some(isJsonObject)) {
    const length = Math.max(before.length, after.length);
    for (let index = 0; index < length; index += 1) {
      compare(`${path}.${index}`, before[index] ?? null, after[index] ?? null, into);
    }
  } else {
    compareWhole(path, before, after, into);
  }
}

function compareFields(
  prefix: string,
  before: JsonObject,
  after: JsonObject,
  into: Change[],
): void {
  for (const field of fieldsOf(before, after)) {
    compare(`${prefix}${field}`, fieldOf(before, field), fieldOf(after, field), into);
  }
}

function compareWhole(path: string, before: JsonValue, after: JsonValue, into: Change[]): void {
  if (before === after || JSON.stringify(before) === JSON.stringify(after)) return;
  into.push({ path, before, after });
}

const fieldsOf = (before: JsonObject, after: JsonObject): readonly string[] => [
  ...new Set([...Object.keys(before), ...Object.keys(after)]),
];

/** Its own alone: every object has a `constructor`, which no record ever said. */
const fieldOf = (record: JsonObject, field: string): JsonValue =>
  Object.hasOwn(record, field) ? (record[field] ?? null) : null;

const isList = (value: JsonValue): value is readonly JsonValue[] => Array.isArray(value);
