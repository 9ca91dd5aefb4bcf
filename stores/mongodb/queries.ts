import type { Document, Filter as MongoFilter } from 'mongodb';
import type { Filter, Projection, Query } from '../../projections/read-model.ts';
import { type StoredDocument, pathOf } from './layout.ts';

/** The port's filters and sorts as MongoDB queries. */

type Condition = MongoFilter<StoredDocument>;

/** Excludes tombstones. */
const LIVE: Condition = { live: true };

/** The condition for documents that pass all filters. */
export function conditionOf(projection: Projection, filters: readonly Filter[]): Condition {
  return all([LIVE, ...filters.map((filter) => one(projection, filter))]);
}

/**
 * The condition of a page: the filters, and strictly after a place where one is given.
 *
 * "After (a, b, key)" becomes "beyond a, or a and beyond b, or a and b and beyond key", as a top-level `$or` whose
 * branches repeat all filters. Each branch is one index range, which the server merges in order, so the cost does not
 * grow with the page number.
 */
export function pageOf(projection: Projection, query: Query): Condition {
  const { after } = query;
  if (after === undefined) return conditionOf(projection, query.filters);
  const base = [LIVE, ...query.filters.map((filter) => one(projection, filter))];
  const branches: Condition[] = [];
  const equal: Condition[] = [];
  for (const [index, { field, direction }] of query.sort.entries()) {
    const path = pathOf(projection, field);
    const value = after.values[index] ?? null;
    for (const condition of beyond(value, direction === 'ascending')) {
      branches.push(all([...base, ...equal, { [path]: condition }]));
    }
    equal.push({ [path]: value });
  }
  const key = keyDirection(query) === 1 ? { $gt: after.key } : { $lt: after.key };
  branches.push(all([...base, ...equal, { _id: key }]));
  return branches.length === 1 ? (branches[0] ?? LIVE) : { $or: branches };
}

/** The order of a query, ending with the key in the direction of the last sort. */
export function sortOf(projection: Projection, query: Query): Record<string, 1 | -1> {
  const order: Record<string, 1 | -1> = {};
  for (const { field, direction } of query.sort) {
    order[pathOf(projection, field)] = direction === 'ascending' ? 1 : -1;
  }
  order['_id'] = keyDirection(query);
  return order;
}

/** The path of a field that is no list. @throws TypeError for a list, and for a field that is not declared */
export function singlePathOf(projection: Projection, field: string): string {
  const path = pathOf(projection, field);
  if (projection.fields[field] !== 'text-list') return path;
  throw new TypeError(`the field ${field} is a list; a single value does not fit it`);
}

function keyDirection(query: Query): 1 | -1 {
  return query.sort.at(-1)?.direction === 'descending' ? -1 : 1;
}

function all(conditions: readonly Condition[]): Condition {
  return conditions.length === 1 ? (conditions[0] ?? LIVE) : { $and: [...conditions] };
}

/**
 * The conditions for values beyond one, in one direction. MongoDB sorts null first, but `$lt` and `$gt` only compare
 * values of the same type, so null needs its own condition.
 */
function beyond(value: string | number | boolean | null, ascending: boolean): Document[] {
  if (ascending) return value === null ? [{ $ne: null }] : [{ $gt: value }];
  return value === null ? [] : [{ $lt: value }, { $eq: null }];
}

function one(projection: Projection, filter: Filter): Condition {
  const path = pathOf(projection, filter.field);
  switch (filter.op) {
    case 'eq':
    case 'has':
      return { [path]: { $eq: filter.value } };
    case 'in':
      return { [path]: { $in: [...filter.value] } };
    case 'contains':
      return { [path]: { $regex: eitherCase(filter.value) } };
    default:
      return { [path]: { [`$${filter.op}`]: filter.value } };
  }
}

/**
 * A pattern that ignores the case of ASCII letters. The option `i` would also fold other alphabets, and match the Kelvin
 * sign for a k, unlike the SQLite adapter.
 */
function eitherCase(text: string): string {
  return text
    .replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
    .replace(/[a-zA-Z]/g, (letter) => `[${letter.toLowerCase()}${letter.toUpperCase()}]`)
    .replaceAll('\0', '\\x00');
}
