import { isJsonObject, type JsonObject, type JsonValue } from './json.ts';

/** One difference between two states of a record, at a dotted path such as `payload.pipeline.0.with.text`. */
export interface Change {
  readonly path: string;
  /** null if there was no value. */
  readonly before: JsonValue;
  /** null if there is no value any more. */
  readonly after: JsonValue;
}

/**
 * The differences between two states of a record, in the order of their fields. Objects are compared field by field and
 * lists of objects element by element, so that a change deep in a pipeline names its place. A record that was created
 * or deleted (null) differs in each field that is set.
 */
export function changesBetween(
  before: JsonObject | null,
  after: JsonObject | null,
): readonly Change[] {
  const changes: Change[] = [];
  const compareField = before === null || after === null ? compareWhole : compare;
  compareFields('', before ?? {}, after ?? {}, changes, compareField);
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
  compareField = compare,
): void {
  for (const field of new Set([...Object.keys(before), ...Object.keys(after)])) {
    compareField(`${prefix}${field}`, fieldOf(before, field), fieldOf(after, field), into);
  }
}

function compareWhole(path: string, before: JsonValue, after: JsonValue, into: Change[]): void {
  if (before === after || JSON.stringify(before) === JSON.stringify(after)) return;
  into.push({ path, before, after });
}

/** Own fields only: every object inherits a `constructor`. */
const fieldOf = (record: JsonObject, field: string): JsonValue =>
  Object.hasOwn(record, field) ? (record[field] ?? null) : null;

const isList = (value: JsonValue): value is readonly JsonValue[] => Array.isArray(value);
