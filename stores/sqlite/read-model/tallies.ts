import type { Filter, Projection, Tally } from '../../../projections/read-model.ts';
import { execute, type Database, type Statement as Prepared } from '../database.ts';
import type { Cell, Column } from './view-table.ts';

/**
 * Counts of documents by the values of some fields, maintained in the documents' transactions. Counting a million index
 * rows takes too long for a list. null is stored as an empty string. Filters for either are not answered from here,
 * except for null in fields whose strings are never empty.
 */

/** Length of a timestamp up to its hour, and a character that sorts after all characters that may follow. */
const TO_THE_HOUR = 13;
const AFTER_THE_HOUR = ';';
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:/;
const HOUR = 'hour';
/** Most values of one field that are summed up; more are counted. */
const MAX_VALUES = 100;

/** Rows sorted at once when counting; few enough for the processor's cache, which halves the cost. */
const MAX_SORTED_ROWS = 1_000;
const ADDING_UP = 'ON CONFLICT DO UPDATE SET documents = documents + excluded.documents';

/** A part of a tally's key among a document's columns. */
interface Place {
  readonly place: number;
  readonly isHour: boolean;
}

interface Part {
  /** The name in the tally table. */
  readonly name: string;
  /** The column in the table of documents. */
  readonly column: string;
  readonly isHour: boolean;
}

/** Counts all tallies anew, inside the caller's transaction. */
export function createTallies(
  database: Database,
  projection: Projection,
  columns: readonly Column[],
): void {
  const last = lastId(database);
  for (const [index, tally] of (projection.tallies ?? []).entries()) {
    const table = tableOf(index);
    const parts = partsOf(tally, columns);
    const keys = parts.map(({ name }) => name).join(', ');
    database.exec(`
      DROP TABLE IF EXISTS ${table};
      CREATE TABLE ${table} (${keys}, documents INTEGER NOT NULL, PRIMARY KEY (${keys})) WITHOUT ROWID;
    `);
    const add = database.prepare(`
      INSERT INTO ${table} SELECT ${parts.map(valueOf).join(', ')}, count(*) FROM documents
        WHERE id > ? AND id <= ? GROUP BY ${parts.map((_, i) => String(i + 1)).join(', ')}
        ${ADDING_UP}`);
    for (let id = 0; id < last; id += MAX_SORTED_ROWS) execute(add, id, id + MAX_SORTED_ROWS);
  }
}

/** Adds the tallies of an attached file, inside the caller's transaction. @param from the name it is attached under */
export function addTallies(database: Database, projection: Projection, from: string): void {
  for (const index of (projection.tallies ?? []).keys()) {
    const table = tableOf(index);
    // Without WHERE, SQLite would parse ON as part of a join.
    database.exec(
      `INSERT INTO main.${table} SELECT * FROM ${from}.${table} WHERE TRUE ${ADDING_UP}`,
    );
  }
}

/** A batch's change of one count. */
interface Change {
  readonly values: readonly (string | number)[];
  by: number;
}

interface KeptTally {
  readonly places: readonly Place[];
  readonly add: Prepared;
  readonly changes: Map<string, Change>;
}

/** Maintains a file's tallies; each changed count is written once per batch. */
export class Tallies {
  readonly #tallies: readonly KeptTally[];

  constructor(database: Database, projection: Projection, columns: readonly Column[]) {
    this.#tallies = (projection.tallies ?? []).map((tally, index) => {
      const parts = partsOf(tally, columns);
      const places = parts.map(({ column, isHour }) => {
        return { place: columns.findIndex(({ name }) => name === column), isHour };
      });
      const add = database.prepare(
        `INSERT INTO ${tableOf(index)} VALUES (${'?, '.repeat(parts.length)}?)
         ${ADDING_UP}`,
      );
      return { places, add, changes: new Map<string, Change>() };
    });
  }

  /** Notes a document's columns before and after a change; null if it does not exist. */
  move(before: readonly Cell[] | null, after: readonly Cell[] | null): void {
    for (const tally of this.#tallies) {
      if (before !== null) changeOf(tally, before).by -= 1;
      if (after !== null) changeOf(tally, after).by += 1;
    }
  }

  /** Writes the changes, inside the caller's transaction. */
  flush(): void {
    for (const { add, changes } of this.#tallies) {
      for (const { values, by } of changes.values()) if (by !== 0) execute(add, ...values, by);
    }
    this.forget();
  }

  /** Drops unwritten changes. */
  forget(): void {
    for (const { changes } of this.#tallies) changes.clear();
  }
}

/** The change of the count that a document belongs to. */
function changeOf({ places, changes }: KeptTally, cells: readonly Cell[]): Change {
  const values = places.map((place) => valueIn(cells, place));
  const key = JSON.stringify(values);
  let change = changes.get(key);
  if (change === undefined) {
    change = { values, by: 0 };
    changes.set(key, change);
  }
  return change;
}

/** How to answer a count from a tally. */
export interface TallyCount {
  /** Sums up whole hours; null if there are none. */
  readonly sum: { readonly sql: string; readonly parameters: readonly Cell[] } | null;
  /** Filters for the partial hours at both ends, which are counted among the documents. */
  readonly edges: readonly (readonly Filter[])[];
}

/** @returns null if no tally fits */
export function countByTally(
  projection: Projection,
  columns: readonly Column[],
  filters: readonly Filter[],
): TallyCount | null {
  for (const [index, tally] of (projection.tallies ?? []).entries()) {
    const bounds = filters.filter(
      ({ field, op }) => field === tally.hourOf && op !== 'eq' && op !== 'in',
    );
    const equal = filters.filter((filter) => !bounds.includes(filter));
    if (!equal.every((filter) => isTallied(tally, filter))) continue;
    const span = spanOf(bounds);
    if (span === null) continue;
    const conditions = equal.map(({ field, value }) => {
      const asked = Array.isArray(value) ? `IN (${value.map(() => '?').join(', ')})` : '= ?';
      return `${columnOf(field, columns)} ${asked}`;
    });
    const parameters = equal
      .flatMap(({ value }) => value)
      .map((value) => (typeof value === 'boolean' ? Number(value) : (value ?? '')));
    if (span.edges.length > 0) conditions.push(`${HOUR} > ?`);
    if (span.to !== undefined) conditions.push(`${HOUR} < ?`);
    const hours = span.edges.length === 0 ? [] : [span.from, span.to];
    const where = conditions.length === 0 ? 'TRUE' : conditions.join(' AND ');
    return {
      sum: span.hasWhole
        ? {
            sql: `SELECT coalesce(sum(documents), 0) FROM ${tableOf(index)} WHERE ${where}`,
            parameters: [...parameters, ...hours].filter((one) => one !== undefined) as Cell[],
          }
        : null,
      edges: span.edges.map((edge) => [...equal, ...edge]),
    };
  }
  return null;
}

interface Span {
  /** The hours between these two, both excluded; undefined: unbounded. */
  readonly from: string;
  readonly to: string | undefined;
  readonly hasWhole: boolean;
  readonly edges: readonly (readonly Filter[])[];
}

/** The whole hours between two bounds, and the rest at both ends; null for other bounds. */
function spanOf(bounds: readonly Filter[]): Span | null {
  const lower = bounds.filter(({ op }) => op === 'gt' || op === 'gte');
  const upper = bounds.filter(({ op }) => op === 'lt' || op === 'lte');
  if (lower.length > 1 || upper.length > 1 || lower.length + upper.length < bounds.length) {
    return null;
  }
  const [from, to] = [lower[0], upper[0]].map((bound) => bound && hourOf(bound));
  if (from === null || to === null) return null;
  // Both bounds are in one hour, so there are few documents to count.
  if (from !== undefined && to !== undefined && from >= to) {
    return { from, to, hasWhole: false, edges: [bounds] };
  }
  const edges: (readonly Filter[])[] = [];
  for (const bound of lower) {
    edges.push([bound, { field: bound.field, op: 'lt', value: `${from ?? ''}${AFTER_THE_HOUR}` }]);
  }
  for (const bound of upper)
    edges.push([{ field: bound.field, op: 'gte', value: to ?? '' }, bound]);
  return { from: from ?? '', to, hasWhole: true, edges };
}

function hourOf({ value }: Filter): string | null {
  return typeof value === 'string' && TIMESTAMP.test(value) ? value.slice(0, TO_THE_HOUR) : null;
}

function isTallied(tally: Tally, { field, op, value }: Filter): boolean {
  if (op !== 'eq' && op !== 'in') return false;
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  const isNullable = tally.nullable?.includes(field) === true;
  const areCounted = values.every((each) => each !== '' && (each !== null || isNullable));
  return areCounted && values.length <= MAX_VALUES && tally.fields.includes(field);
}

function valueIn(cells: readonly Cell[], { place, isHour }: Place): string | number {
  const cell = cells[place] ?? '';
  return isHour && typeof cell === 'string' ? cell.slice(0, TO_THE_HOUR) : cell;
}

function lastId(database: Database): number {
  const row = database.prepare('SELECT coalesce(max(id), 0) AS last FROM documents').get();
  return Number((row as { last: number }).last);
}

const tableOf = (index: number): string => `tally_${String(index)}`;

function partsOf({ fields, hourOf: time }: Tally, columns: readonly Column[]): readonly Part[] {
  const parts = fields.map((field): Part => {
    const column = columnOf(field, columns);
    return { name: column, column, isHour: false };
  });
  if (time === undefined) return parts;
  return [...parts, { name: HOUR, column: columnOf(time, columns), isHour: true }];
}

function valueOf({ column, isHour }: Part): string {
  return `coalesce(${isHour ? `substr(${column}, 1, ${String(TO_THE_HOUR)})` : column}, '')`;
}

function columnOf(field: string, columns: readonly Column[]): string {
  const column = columns.find((each) => each.field === field);
  if (column === undefined || column.kind === 'text-list') {
    throw new TypeError(`a tally names "${field}", which is not a countable field`);
  }
  return column.name;
}
