import type { JsonObject, JsonValue } from '../../../domain/json.ts';
import type { FieldKind, Projection } from '../../../projections/read-model.ts';
import type { Database } from '../database.ts';

/**
 * How one generation of a projection lies in its file.
 *
 * - `documents`: a row each, with an integer as its own key and a unique index over the document's key
 *   (random texts as the table's own key halve the speed of writing). The queried fields stand in columns
 *   of their own, before the document's text, so that reading them does not touch long texts.
 * - `list_<field>` for each text-list: (value, row), clustered in that order. An index can't reach into a
 *   JSON array, and a table of pairs finds the rows of a value, and whether a row has it, in one step.
 * - `checkpoint`: one row; in the same transaction as the documents, so that the two never disagree.
 *   `filling` names the start of the machine during which a bulk fill began, and is null once that is
 *   finished: until then nothing is synced, and what a power cut leaves of it must not be trusted. `landmark` is an
 *   event of the log, as JSON; files of older releases lack it until they are opened for writing.
 */

/** The layout's version, kept as the file's `user_version`. */
export const LAYOUT_VERSION = 1;

/**
 * MiB of a view's pages that are kept in memory. What is not there comes from the system's cache, for a call; memory that
 * is taken for more of them costs more than such calls do, until all of it has been taken. Only where documents are added
 * in bulk beside an index over their keys, each one changes another page of that.
 */
export const KEPT_PAGES = { usual: 16, fillingByKeys: 192 } as const;

/** A value as SQLite holds it. */
export type Cell = string | number | null;

/** A queried field and where it lies. */
export interface Column {
  readonly field: string;
  readonly kind: FieldKind;
  /** Its name in `documents`, fit for use in SQL. */
  readonly name: string;
  /** How texts begin that are null here; left out where there are none. */
  readonly unasked?: string;
}

const FIELD_NAME = /^[A-Za-z][A-Za-z0-9_]*$/;

/** The columns of a projection's fields. @throws TypeError for a name that is not of `[A-Za-z0-9_]` */
export function columnsOf(projection: Projection): readonly Column[] {
  return Object.entries(projection.fields).map(([field, kind]) => {
    if (!FIELD_NAME.test(field)) {
      throw new TypeError(`${projection.name}: "${field}" can't be the name of a queried field`);
    }
    const unasked = projection.unasked?.[field];
    const name = `${kind === 'text-list' ? 'l' : 'f'}_${field}`;
    return { field, kind, name, ...(unasked === undefined ? {} : { unasked }) };
  });
}

/** The table of a text-list. */
export function listTable(column: Column): string {
  return `list_${column.field}`;
}

/**
 * The column's value for a document. What is left out, not asked for, or not of the field's kind, is null. A text-list is
 * kept as JSON, without repetitions.
 */
export function cellOf(column: Column, document: JsonObject): Cell {
  // What every object has (`constructor`) is no value of a kind, and so null as well.
  const value: JsonValue | undefined = document[column.field];
  switch (column.kind) {
    case 'text':
      if (typeof value !== 'string') return null;
      return column.unasked !== undefined && value.startsWith(column.unasked) ? null : value;
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

/** Makes the tables of an empty file, without any index; inside the caller's transaction. */
export function createTables(
  database: Database,
  columns: readonly Column[],
  filling: string | null,
): void {
  const fields = columns.map(({ name, kind }) => {
    // REAL holds whole numbers as compactly as INTEGER, and never gives back one that JavaScript can't hold.
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

/** Whether the file has a place for the landmark. */
export function hasLandmark(database: Database): boolean {
  const sql = "SELECT 1 FROM pragma_table_info('checkpoint') WHERE name = 'landmark'";
  return database.prepare(sql).get() !== undefined;
}

/** Makes that place in a file of an older release, which works on with it as well. */
export function addLandmark(database: Database): void {
  if (!hasLandmark(database)) database.exec('ALTER TABLE checkpoint ADD COLUMN landmark TEXT');
}

/**
 * Makes what a bulk fill left out: the rows of the text-lists, from scratch, and the declared indexes, as far as they
 * are not there. An index over a text-list is its table, which is there anyhow.
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

/** Makes the index over the documents' keys, unless it is there; inside the caller's transaction. */
export function createKeyIndex(database: Database): void {
  database.exec('CREATE UNIQUE INDEX IF NOT EXISTS documents_key ON documents (key)');
}

/** Whether that index is there: a generation that is being filled has none until a key is looked for. */
export function hasKeyIndex(database: Database): boolean {
  const row = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'documents_key'").get();
  return row !== undefined;
}

function columnNamed(field: string, projection: Projection, columns: readonly Column[]): Column {
  const column = columns.find((each) => each.field === field);
  if (column !== undefined) return column;
  throw new TypeError(`${projection.name}: an index names "${field}", not a field`);
}
