import { ObjectId, calculateObjectSize } from 'bson';
import { Aggregator, Context, ProcessingMode, Query } from 'mingo';
import * as queryOperators from 'mingo/operators/query';
import { Query as PlainQuery } from 'mingo/query';
// The package's own function creates a context of all its operators for each update, which takes
// most of its time.
import { update as applyOperators } from 'mingo/updater';
import { CommandError } from './command-error.ts';
import type { Table } from './storage.ts';
import { idOf, valueAt } from './storage.ts';
import { type Doc, throughBson } from './wire.ts';

/**
 * The semantics of queries, pipelines and updates: mingo's, with the server's clock for `$$NOW`.
 */

/** Maximum size of a stored document in bytes. */
const MAX_DOCUMENT = 16 * 1024 * 1024;

/**
 * The operators of a filter without `$expr`. A query copies its context, and copying all of mingo's
 * takes most of its time.
 */
const QUERY_OPERATORS = Context.init({ query: { ...queryOperators } });

/** A value as a document, empty when there is none. */
export function asDoc(value: unknown): Doc {
  return typeof value === 'object' && value !== null ? (value as Doc) : {};
}

/** A value as a list of documents. */
export function asDocs(value: unknown): Doc[] {
  return Array.isArray(value) ? value.map(asDoc) : [];
}

/** The documents of a collection that match a filter. */
export function matching(table: Table | undefined, filter: Doc, now: number): Doc[] {
  if (table === undefined) return [];
  const byKey = documentsByKey(table, filter);
  // The keys are already checked, because mingo would scan the whole list for each document.
  const { _id, ...rest } = filter;
  const asked = byKey === null ? filter : rest;
  const found = byKey ?? [...table.documents.values()];
  if (Object.keys(asked).length === 0) return found;
  const condition = filterWithNow(asked, now);
  const query =
    '$expr' in condition
      ? new Query(condition, {})
      : new PlainQuery(condition, { context: QUERY_OPERATORS });
  return found.filter((document) => query.test(document));
}

/**
 * Runs an aggregation pipeline. The input documents are not changed, and are returned if there is
 * no stage.
 */
export function aggregate(documents: readonly Doc[], pipeline: readonly Doc[], now: number): Doc[] {
  if (pipeline.length === 0) return [...documents];
  const stages = pipeline.map((stage) =>
    '$match' in stage
      ? { $match: filterWithNow(asDoc(stage['$match']), now) }
      : asDoc(withNow(stage, now)),
  );
  const options = { processingMode: ProcessingMode.CLONE_INPUT };
  return new Aggregator(stages, options).run<Doc>([...documents]);
}

/** Applies the options of `find` to the matching documents. */
export function shaped(documents: readonly Doc[], command: Doc, now: number): Doc[] {
  const stages: Doc[] = [];
  const { skip, projection } = command;
  const limit = Math.abs(Number(command['limit'] ?? 0));
  if (Number(skip ?? 0) > 0) stages.push({ $skip: skip });
  if (limit > 0) stages.push({ $limit: limit });
  if (Object.keys(asDoc(projection)).length > 0) stages.push({ $project: projection });
  return aggregate(sorted(documents, asDoc(command['sort'])), stages, now);
}

/**
 * A document after an update.
 * @param change operators, a pipeline, or a whole document
 * @param inserting whether an upsert creates the document
 * @throws CommandError 66 if it would change the `_id`
 */
export function updated(document: Doc, change: unknown, inserting: boolean, now: number): Doc {
  const before = throughBson(document);
  let after: Doc;
  if (Array.isArray(change)) {
    after = aggregate([before], asDocs(change), now)[0] ?? {};
  } else if (Object.keys(asDoc(change)).every((name) => !name.startsWith('$'))) {
    after = { ...('_id' in document && { _id: document['_id'] }), ...asDoc(change) };
  } else {
    after = operated(before, asDoc(change), inserting, now);
  }
  if ('_id' in document && idOf(after) !== idOf(document)) {
    throw new CommandError(
      66,
      'ImmutableField',
      "Performing an update on the path '_id' would modify the immutable field '_id'",
    );
  }
  const whole = '_id' in after ? after : { _id: new ObjectId(), ...after };
  refuseTooLarge(whole);
  return throughBson(whole);
}

/** @throws CommandError 10334 for a document that every server rejects */
export function refuseTooLarge(document: Doc): void {
  const size = calculateObjectSize(document);
  if (size <= MAX_DOCUMENT) return;
  const message = `BSONObj size: ${size} (0x${size.toString(16)}) is invalid. Size must be between 0 and 16793600(16MB)`;
  throw new CommandError(10334, 'BSONObjectTooLarge', message);
}

/** The initial document of an upsert: the fields for which the filter requires one value. */
export function upsertBase(filter: Doc): Doc {
  const base: Doc = {};
  for (const [field, condition] of Object.entries(filter)) {
    if (field === '$and') {
      for (const part of asDocs(condition)) Object.assign(base, upsertBase(part));
    } else if (!field.startsWith('$')) {
      const operators = isOperators(condition) ? asDoc(condition) : { $eq: condition };
      if ('$eq' in operators) base[field] = operators['$eq'];
    }
  }
  return base;
}

function operated(document: Doc, change: Doc, inserting: boolean, now: number): Doc {
  refuseConflictingPaths(change);
  const { $setOnInsert, $currentDate, ...rest } = change;
  const set = {
    ...asDoc(rest['$set']),
    ...(inserting ? asDoc($setOnInsert) : {}),
    ...Object.fromEntries(
      Object.keys(asDoc($currentDate)).map((field) => [field, new Date(now)] as const),
    ),
  };
  const modifier = { ...rest, ...(Object.keys(set).length > 0 && { $set: set }) };
  const isSimple = Object.keys(rest).every((name) => name === '$set' || name === '$unset');
  const unset = Object.keys(asDoc(rest['$unset']));
  if (isSimple && [...Object.keys(set), ...unset].every(isPlainField)) {
    // The form of most writes. mingo creates a context of operators for it, which takes ten times
    // as long.
    Object.assign(document, set);
    for (const field of unset) delete document[field];
    return document;
  }
  applyOperators(document, modifier);
  return document;
}

/** Whether a name is a field, not a path. */
const isPlainField = (name: string): boolean => !name.includes('.') && !name.startsWith('$');

/** @throws CommandError 40 if two operators change the same field, or one a part of the other's */
function refuseConflictingPaths(change: Doc): void {
  const paths: string[] = [];
  for (const path of Object.values(change).flatMap((fields) => Object.keys(asDoc(fields)))) {
    const other = paths.find(
      (one) => one === path || one.startsWith(`${path}.`) || path.startsWith(`${one}.`),
    );
    if (other !== undefined) {
      const message = `Updating the path '${path}' would create a conflict at '${other}'`;
      throw new CommandError(40, 'ConflictingUpdateOperators', message);
    }
    paths.push(path);
  }
}

/** The documents that a filter names by `_id`, one or a list of strings; null for other filters. */
function documentsByKey(table: Table, { _id: id }: Doc): Doc[] | null {
  const { $in: list, ...others } = asDoc(id);
  const listed = Array.isArray(list) && Object.keys(others).length === 0;
  const wanted: unknown[] = typeof id === 'string' ? [id] : listed ? list : [];
  if (wanted.length === 0 || wanted.some((value) => typeof value !== 'string')) return null;
  return [...new Set(wanted)]
    .map((value) => table.documents.get(idOf({ _id: value })))
    .filter((document) => document !== undefined);
}

/** Differs from mingo's UTF-16 order: a server compares strings by their bytes. */
function sorted(documents: readonly Doc[], order: Doc): readonly Doc[] {
  const fields = Object.entries(order).map(([path, direction]) => ({
    path: path.split('.'),
    descending: Number(direction) < 0,
  }));
  return fields.length === 0
    ? documents
    : [...documents].sort((a, b) => {
        for (const { path, descending } of fields) {
          const difference = compareValues(valueAt(a, path), valueAt(b, path));
          if (difference !== 0) return descending ? -difference : difference;
        }
        return 0;
      });
}

/** BSON's order of the value types that can be sorted here. */
const KINDS = ['null', 'number', 'string', 'object', 'boolean'];

function compareValues(a: unknown, b: unknown): number {
  const kinds = KINDS.indexOf(kindOf(a)) - KINDS.indexOf(kindOf(b));
  if (kinds !== 0) return kinds;
  if (typeof a === 'string' && typeof b === 'string') {
    return Buffer.compare(Buffer.from(a), Buffer.from(b));
  }
  return Number(a) - Number(b);
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value;
}

function isOperators(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) === null) {
    return false;
  }
  const names = Object.keys(value);
  return names.length > 0 && names.every((name) => name.startsWith('$'));
}

/**
 * In a filter, values are literal; only `$expr` contains expressions.
 * @throws CommandError for a pattern that every server rejects
 */
function filterWithNow(filter: Doc, now: number): Doc {
  refuseZeroInPatterns(filter);
  return '$expr' in filter ? { ...filter, $expr: withNow(filter['$expr'], now) } : filter;
}

/** Like `RegexMatchExpression`: the regex library ends patterns at U+0000. */
function refuseZeroInPatterns(filter: Doc): void {
  for (const [name, condition] of Object.entries(filter)) {
    if (name === '$regex' && typeof condition === 'string' && condition.includes('\0')) {
      const message = 'Regular expression cannot contain an embedded null byte';
      throw new CommandError(2, 'BadValue', message);
    }
    const parts = Array.isArray(condition) ? asDocs(condition) : [asDoc(condition)];
    for (const part of parts) refuseZeroInPatterns(part);
  }
}

/** Replaces `$$NOW` by the server's present time, except in `$literal`. */
function withNow(value: unknown, now: number): unknown {
  if (value === '$$NOW') return new Date(now);
  if (Array.isArray(value)) return value.map((part) => withNow(part, now));
  if (typeof value !== 'object' || value === null) return value;
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => [
      name,
      name === '$literal' ? part : withNow(part, now),
    ]),
  );
}
