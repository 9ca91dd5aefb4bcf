import type { Filter, Projection, Tally } from '../../../projections/read-model.ts';
import { execute, type Database, type Statement as Prepared } from '../database.ts';
import type { Cell, Column } from './view-table.ts';

/**
 * Numbers of documents by the values of some fields, kept in the same transaction as the documents: to count a million rows of an index takes longer than a list may.
 *
 * What is null stands there as an empty text; filters for either are not answered from here.
 */

/** Characters of a timestamp up to its hour, and what comes after all that may follow them. */
const TO_THE_HOUR = 13;
const AFTER_THE_HOUR = ';';
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:/;
const HOUR = 'hour';
/** Of one field that are asked for together; more are counted. */
const MOST_VALUES = 100;

/** Rows that are sorted to be counted: few enough for the processor's own memory, which halves what a row costs. */
const SORTED_AT_ONCE = 1_000;
/** For what is counted in parts. */
const ADDING_UP = 'ON CONFLICT DO UPDATE SET documents = documents + excluded.documents';

/** Where a part of a tally's key stands among a document's columns. */
interface Place {
  readonly place: number;
  readonly isHour: boolean;
}

interface Part {
  /** In the tally. */
  readonly name: string;
  /** In the documents. */
  readonly column: string;
  readonly isHour: boolean;
}

/** Makes the tallies of what is there, from scratch. Inside the caller's transaction. */
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
    for (let id = 0; id < last; id += SORTED_AT_ONCE) execute(add, id, id + SORTED_AT_ONCE);
  }
}

/**
 * Adds to the tallies those of an attached file that has other documents of the same view. Inside the caller's transaction.
 * @param from the name by which it is attached
 */
export function addTallies(database: Database, projection: Projection, from: string): void {
  for (const index of (projection.tallies ?? []).keys()) {
    const table = tableOf(index);
    // Without a condition, SQLite takes what follows for one of a join.
    database.exec(
      `INSERT INTO main.${table} SELECT * FROM ${from}.${table} WHERE TRUE ${ADDING_UP}`,
    );
  }
}

/** How a number of a tally changes by a batch. */
interface Change {
  readonly values: readonly (string | number)[];
  by: number;
}

interface KeptTally {
  readonly places: readonly Place[];
  readonly add: Prepared;
  readonly changes: Map<string, Change>;
  /** The changes that were looked for last: documents that come together mostly change the same numbers. */
  lastLess: Change | null;
  lastMore: Change | null;
}

/** Keeps the tallies of one file up: what a batch changes of a number is written once, with the batch. */
export class Tallies {
  readonly #tallies: readonly KeptTally[];

  /** The tables are there. */
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
      return { places, add, changes: new Map<string, Change>(), lastLess: null, lastMore: null };
    });
  }

  /** A document's columns were, or are now, these: null where it was not there, or is there no more. */
  move(before: readonly Cell[] | null, after: readonly Cell[] | null): void {
    for (const tally of this.#tallies) {
      if (before !== null) {
        tally.lastLess = changeOf(tally, before, tally.lastLess);
        tally.lastLess.by -= 1;
      }
      if (after !== null) {
        tally.lastMore = changeOf(tally, after, tally.lastMore);
        tally.lastMore.by += 1;
      }
    }
  }

  /** Writes what has changed. Inside the caller's transaction. */
  flush(): void {
    for (const { add, changes } of this.#tallies) {
      for (const { values, by } of changes.values()) if (by !== 0) execute(add, ...values, by);
    }
    this.forget();
  }

  /** What has not been written never was. */
  forget(): void {
    for (const tally of this.#tallies) {
      tally.changes.clear();
      tally.lastLess = null;
      tally.lastMore = null;
    }
  }
}

/** The change of the number that a document counts for. @param last the one to look at first */
function changeOf(
  { places, changes }: KeptTally,
  cells: readonly Cell[],
  last: Change | null,
): Change {
  if (last !== null && areAt(places, cells, last.values)) return last;
  const values: (string | number)[] = [];
  for (const part of places) values.push(valueIn(cells, part));
  const key = JSON.stringify(values);
  let change = changes.get(key);
  if (change === undefined) {
    change = { values, by: 0 };
    changes.set(key, change);
  }
  return change;
}

function areAt(
  places: readonly Place[],
  cells: readonly Cell[],
  values: readonly (string | number)[],
): boolean {
  for (let i = 0; i < places.length; i += 1) {
    const part = places[i] as Place;
    const value = values[i];
    const cell = cells[part.place] ?? '';
    if (cell === value) continue;
    // Compared where it stands: to cut an hour out of each document costs more than all the rest.
    const isWithin = part.isHour && typeof cell === 'string' && typeof value === 'string';
    if (!isWithin || value.length !== TO_THE_HOUR || !cell.startsWith(value)) return false;
  }
  return true;
}

/** How to count what some filters let through, by a tally. */
export interface TallyCount {
  /** Sums up the tally; null where it has no whole hour of what is asked for. */
  readonly sum: { readonly sql: string; readonly parameters: readonly Cell[] } | null;
  /** What is to be counted among the documents besides: the parts of hours at both ends. */
  readonly edges: readonly (readonly Filter[])[];
}

/** @returns null where no tally fits */
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
      .map((value) => (typeof value === 'boolean' ? Number(value) : value));
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
  /** The hours between these two, neither included; undefined: without end. */
  readonly from: string;
  readonly to: string | undefined;
  readonly hasWhole: boolean;
  readonly edges: readonly (readonly Filter[])[];
}

/** The whole hours between two bounds, and what is left at both ends; null for bounds of another kind. */
function spanOf(bounds: readonly Filter[]): Span | null {
  const lower = bounds.filter(({ op }) => op === 'gt' || op === 'gte');
  const upper = bounds.filter(({ op }) => op === 'lt' || op === 'lte');
  if (lower.length > 1 || upper.length > 1 || lower.length + upper.length < bounds.length) {
    return null;
  }
  const [from, to] = [lower[0], upper[0]].map((bound) => bound && hourOf(bound));
  if (from === null || to === null) return null;
  // Both in one hour, or none between them: what there is is few.
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
  const areTold = values.every((each) => each !== null && each !== '');
  return areTold && values.length <= MOST_VALUES && tally.fields.includes(field);
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
    throw new TypeError(`a tally names "${field}", which is no field that it can go by`);
  }
  return column.name;
}
