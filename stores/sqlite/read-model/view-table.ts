import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import type { FieldKind, Projection } from '../../../projections/read-model.ts';
import { openDatabase, type Database } from '../database.ts';

/**
 * The layout of one generation's file.
 *
 * - `documents`: one row each, with an integer primary key and a unique index over the document's key. (Random strings as
 *   the primary key halve the write speed.) Queried fields have columns before the JSON, so reads need not touch it.
 * - `list_<field>` for each string list: (value, row), clustered in that order. An index cannot reach into a JSON array.
 * - `checkpoint`: one row, written in the documents' transactions. `filling` names the machine's boot while a bulk fill
 *   runs: until it ends nothing is synced, and a power cut leaves an untrusted file. `landmark` is an event of the log
 *   as JSON; older releases lack the column.
 */

/** The layout's version, stored as `user_version`. */
export const LAYOUT_VERSION = 1;

/**
 * MiB of pages kept in memory per view. The system's cache holds the rest, and more memory here costs more than the
 * system calls. A bulk fill with an index over the keys changes a random page per document, so it needs more.
 */
export const PAGE_CACHE_MIB = { usual: 16, fillingByKeys: 192 } as const;

/**
 * Opens a view's file for reading.
 *
 * @param immutable whether no file may be created beside it; see `DatabaseOptions`
 * @param busyTimeout milliseconds to wait for another connection's lock
 * @throws the driver's errors: `cannot-open` when the file is gone
 */
export function openView(file: string, immutable: boolean, busyTimeout: number): Database {
  return openDatabase({
    file,
    what: 'view',
    version: LAYOUT_VERSION,
    migrate: () => undefined,
    readOnly: true,
    immutable,
    busyTimeout,
    cacheMiB: 8,
  });
}

/** A value as SQLite stores it. */
export type Cell = string | number | null;

/** A queried field and its column. */
export interface Column {
  readonly field: string;
  readonly kind: FieldKind;
  /** Name of the column, safe in SQL. */
  readonly name: string;
  /** Strings with this prefix count as null. */
  readonly unqueried?: string;
}

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

/** The columns of a projection's fields. @throws TypeError for a name outside `[A-Za-z0-9_]` */
export function columnsOf(projection: Projection): readonly Column[] {
  const known = knownColumns.get(projection);
  if (known !== undefined) return known;
  const columns = Object.entries(projection.fields).map(([field, kind]) => {
    if (!FIELD_NAME.test(field)) {
      throw new TypeError(`${projection.name}: "${field}" cannot be the name of a queried field`);
    }
    const unqueried = projection.unqueried?.[field];
    const name = `${kind === 'text-list' ? 'l' : 'f'}_${field}`;
    return { field, kind, name, ...(unqueried === undefined ? {} : { unqueried }) };
  });
  knownColumns.set(projection, columns);
  return columns;
}

/** The columns by projection. Every request makes point queries, which need them. */
const knownColumns = new WeakMap<Projection, readonly Column[]>();

/** The table of a string list. */
export function listTable(column: Column): string {
  return `list_${column.field}`;
}

/** A document's value for a column. A missing value, or one of another kind, is null. A string list becomes JSON, without duplicates. */
export function cellOf(column: Column, document: JsonObject): Cell {
  // Inherited properties (`constructor`) are functions, so they become null too.
  const value: JsonValue | undefined = document[column.field];
  switch (column.kind) {
    case 'text':
      if (typeof value !== 'string') return null;
      return column.unqueried !== undefined && value.startsWith(column.unqueried) ? null : value;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? Number(value) : null;
    case 'text-list': {
      if (!Array.isArray(value)) return null;
      const texts = value.filter((one: unknown) => typeof one === 'string');
      return texts.length === 0 ? null : JSON.stringify([...new Set(texts)]);
    }
  }
}

/** Creates the tables of an empty file, without indexes, inside the caller's transaction. */
export function createTables(
  database: Database,
  columns: readonly Column[],
  filling: string | null,
): void {
  const fields = columns.map(({ name, kind }) => {
    // REAL stores whole numbers as compactly as INTEGER, and never returns one that JavaScript cannot hold.
    return `${name} ${kind === 'text' || kind === 'text-list' ? 'TEXT' : 'REAL'},`;
  });
  database.exec(`
    CREATE TABLE documents (
      id INTEGER PRIMARY KEY, key TEXT NOT NULL, position TEXT NOT NULL,
      ${fields.join(' ')} document TEXT NOT NULL);
    CREATE TABLE checkpoint (
      id INTEGER PRIMARY KEY CHECK (id = 1), position TEXT NOT NULL, fence INTEGER NOT NULL, filling TEXT,
      landmark TEXT);
  `);
  for (const column of columns.filter(({ kind }) => kind === 'text-list')) {
    database.exec(`CREATE TABLE ${listTable(column)} (
      value TEXT NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (value, id)) WITHOUT ROWID`);
  }
  database.prepare("INSERT INTO checkpoint VALUES (1, '', 0, ?, NULL)").run(filling);
}

/** Whether the file has the landmark column. */
export function hasLandmark(database: Database): boolean {
  const sql = "SELECT 1 FROM pragma_table_info('checkpoint') WHERE name = 'landmark'";
  return database.prepare(sql).get() !== undefined;
}

/** Adds that column to a file of an older release, which still works with it. */
export function addLandmark(database: Database): void {
  if (!hasLandmark(database)) database.exec('ALTER TABLE checkpoint ADD COLUMN landmark TEXT');
}

/**
 * Creates the parts that a bulk fill left out: the rows of the string lists, and missing indexes. A string list's table
 * is its index.
 */
export function createIndexes(
  database: Database,
  projection: Projection,
  columns: readonly Column[],
): void {
  createKeyIndex(database);
  for (const column of columns.filter(({ kind }) => kind === 'text-list')) {
    database.exec(`DELETE FROM ${listTable(column)}`);
    database.exec(`INSERT OR IGNORE INTO ${listTable(column)} (value, id)
      SELECT entry.value, documents.id FROM documents, json_each(documents.${column.name}) AS entry
      WHERE documents.${column.name} IS NOT NULL ORDER BY 1, 2`);
  }
  for (const [place, fields] of projection.indexes.entries()) {
    const parts = fields.map((field) => columnNamed(field, projection, columns));
    if (parts.some(({ kind }) => kind === 'text-list')) continue;
    const names = parts.map(({ name }) => name);
    const covered = (projection.covered?.[place] ?? [])
      .map((field) => columnNamed(field, projection, columns).name)
      .filter((name) => !names.includes(name));
    const sparse = parts.filter(({ field }) => projection.sparse?.includes(field));
    const where = sparse.map(({ name }) => `${name} IS NOT NULL`).join(' AND ');
    database.exec(
      `CREATE INDEX IF NOT EXISTS by_${fields.join('_and_')}
       ON documents (${[...names, 'key', ...covered].join(', ')})${where === '' ? '' : ` WHERE ${where}`}`,
    );
  }
}

/** Creates the index over the documents' keys if missing. */
export function createKeyIndex(database: Database): void {
  database.exec('CREATE UNIQUE INDEX IF NOT EXISTS documents_key ON documents (key)');
}

/** Whether that index exists; a bulk fill creates it with the first lookup. */
export function hasKeyIndex(database: Database): boolean {
  const row = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'documents_key'").get();
  return row !== undefined;
}

function columnNamed(field: string, projection: Projection, columns: readonly Column[]): Column {
  const column = columns.find((each) => each.field === field);
  if (column !== undefined) return column;
  throw new TypeError(`${projection.name}: an index names "${field}", not a field`);
}
