import type { Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { ViewDocument, Projection, ViewWriter } from '../../../projections/read-model.ts';
import {
  execute,
  setPageCache,
  prepareForArrays,
  type Database,
  type Statement as Prepared,
} from '../database.ts';
import { MAX_CHARACTERS_WHEN_FILLING, RecentRows, type KnownRow } from './recent-rows.ts';
import { Tallies } from './tallies.ts';
import {
  cellOf,
  createKeyIndex,
  hasKeyIndex,
  PAGE_CACHE_MIB,
  listTable,
  type Cell,
  type Column,
} from './view-table.ts';

/** A document to write; null deletes. */
export interface DocumentChange {
  readonly key: string;
  readonly position: Position;
  readonly document: JsonObject | null;
  /** Whether no row has this key. Default: unknown. */
  readonly isFirst?: boolean;
}

/** A document known to have no row yet. */
type FirstChange = Pick<DocumentChange, 'key' | 'position'> & { readonly document: JsonObject };

/** Update statements kept prepared, by the columns they set. */
const MAX_PREPARED_UPDATES = 128;

/** Rows per statement where no lookup is needed; a call costs about as much as a row. */
const ROWS_PER_INSERT = 16;

/** The parts of a row that are read. The columns follow from the document; fetching them would cost more. */
type Row = readonly [id: number, position: string, document: string];

/**
 * Reads and writes the rows of `documents` and of the string lists, inside the caller's transaction.
 *
 * A row is read before it is changed, and only the columns that differ are set. SQLite then skips all other indexes,
 * which makes a typical update three times as fast.
 *
 * A bulk fill has no index over the keys until a key that is no longer remembered is looked up: building it at the end
 * is cheaper.
 */
export class DocumentTable {
  readonly #database: Database;
  readonly #columns: readonly Column[];
  readonly #isOver: (document: JsonObject) => boolean;
  readonly #tallies: Tallies;
  readonly #lists: readonly {
    readonly place: number;
    readonly insert: Prepared;
    readonly remove: Prepared;
  }[];
  readonly #select: Prepared;
  readonly #insertOne: Prepared;
  /** The same for {@link ROWS_PER_INSERT} rows. */
  #insertMany: Prepared | null = null;
  readonly #insertion: string;
  /** The values of a row, as at the end of {@link #insertion}. */
  readonly #row: string;
  #insert: Prepared | null = null;
  readonly #delete: Prepared;
  readonly #updates = new Map<string, Prepared>();
  #recent: RecentRows;
  /** Keys that a lookup since the last write did not find; they are inserted without another lookup. */
  #absent = new Set<string>();
  readonly #load: Prepared;
  #bulk: boolean;
  /** Whether the index over the keys exists; null: unknown. */
  #hasKeys: boolean | null = null;

  /** @param bulk most documents are new, and the string lists are filled later */
  constructor(
    database: Database,
    projection: Projection,
    columns: readonly Column[],
    bulk: boolean,
  ) {
    this.#database = database;
    this.#tallies = new Tallies(database, projection, columns);
    this.#columns = columns;
    this.#isOver = (document) => projection.isFinal?.(document) === true;
    this.#bulk = bulk;
    this.#recent = new RecentRows(bulk ? MAX_CHARACTERS_WHEN_FILLING : undefined);
    const names = columns.map(({ name }) => `${name}, `).join('');
    this.#select = prepareForArrays(
      database,
      'SELECT id, position, document FROM documents WHERE key = ?',
    );
    this.#load = prepareForArrays(
      database,
      `SELECT documents.key, documents.id, position, document
       FROM json_each(?) AS wanted CROSS JOIN documents ON documents.key = wanted.value`,
    );
    this.#row = `(?, ?, ${'?, '.repeat(columns.length)}?)`;
    this.#insertion = `INSERT INTO documents (key, position, ${names}document) VALUES ${this.#row}`;
    this.#insertOne = database.prepare(this.#insertion);
    this.#delete = database.prepare('DELETE FROM documents WHERE id = ?');
    this.#lists = columns.flatMap((column, place) => {
      if (column.kind !== 'text-list') return [];
      const table = listTable(column);
      const insert = database.prepare(`INSERT OR IGNORE INTO ${table} (value, id) VALUES (?, ?)`);
      const remove = database.prepare(`DELETE FROM ${table} WHERE value = ? AND id = ?`);
      return [{ place, insert, remove }];
    });
  }

  /** Maintains the string lists from now on. */
  endBulk(): void {
    this.#bulk = false;
    this.#hasKeys = true;
    this.#recent = new RecentRows();
  }

  load(keys: readonly string[]): Awaited<ReturnType<ViewWriter['load']>> {
    const found = new Map<string, { position: Position; document: JsonObject | null }>();
    const missing: string[] = [];
    for (const key of keys) {
      const row = this.#recent.get(key);
      if (row === undefined) missing.push(key);
      else found.set(key, { position: row.position, document: row.document });
    }
    if (missing.length === 0) return found;
    this.#ensureKeyIndex();
    const rows = this.#load.all(JSON.stringify(missing)) as [string, ...Row][];
    for (const [key, id, at, text] of rows) {
      const { position, document } = this.#cache(key, id, at, text);
      found.set(key, { position, document });
    }
    this.#absent = new Set(missing.filter((key) => !found.has(key)));
    return found;
  }

  /** Documents after a key, ordered by key. */
  page(after: string | null, limit: number): readonly ViewDocument[] {
    const rows = this.#database
      .prepare(
        'SELECT key, position, document FROM documents WHERE key > ?1 OR ?1 IS NULL ORDER BY key LIMIT ?2',
      )
      .all(after, limit) as { key: string; position: Position; document: string }[];
    return rows.map(({ key, position, document }) => {
      return { key, position, document: JSON.parse(document) as JsonObject };
    });
  }

  count(): number {
    const row = this.#database.prepare('SELECT count(*) AS documents FROM documents').get();
    return Number((row as { documents: number }).documents);
  }

  /** Drops everything remembered, as another writer may have written. */
  forget(): void {
    this.#recent.forget();
    this.#absent.clear();
    this.#tallies.forget();
    this.#hasKeys = null;
  }

  #cache(key: string, id: number, position: Position, text: string): KnownRow {
    const document = JSON.parse(text) as JsonObject;
    const row = { id, position, cells: this.#cellsOf(document), document, size: text.length };
    this.#recent.set(key, row);
    return row;
  }

  #rowOf(key: string): KnownRow | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent;
    this.#ensureKeyIndex();
    const row = this.#select.get(key) as Row | undefined;
    return row === undefined ? undefined : this.#cache(key, ...row);
  }

  #hasKeyIndex(): boolean {
    return (this.#hasKeys ??= hasKeyIndex(this.#database));
  }

  /** Call before looking up a key. */
  #ensureKeyIndex(): void {
    if (this.#hasKeyIndex()) return;
    createKeyIndex(this.#database);
    if (this.#bulk) setPageCache(this.#database, PAGE_CACHE_MIB.fillingByKeys);
    this.#hasKeys = true;
  }

  write(changes: readonly DocumentChange[]): void {
    const firsts: FirstChange[] = [];
    for (const change of changes) {
      const { key, position, document, isFirst = false } = change;
      if (document === null) {
        if (!isFirst) this.#remove(key, position);
      } else if (isFirst) firsts.push({ key, position, document });
      else this.#put(key, position, document);
    }
    // This comes last, because the other rows are still remembered until then.
    if (firsts.length > 0 && !this.#hasKeyIndex()) this.#append(firsts);
    else for (const { key, position, document } of firsts) this.#put(key, position, document);
    this.#absent.clear();
    this.#tallies.flush();
    this.#recent.age();
  }

  /** Adds rows without checking their keys. */
  #append(firsts: readonly FirstChange[]): void {
    for (let at = 0; at < firsts.length;) {
      const many = firsts.length - at >= ROWS_PER_INSERT;
      const part = firsts.slice(at, at + (many ? ROWS_PER_INSERT : 1));
      at += part.length;
      const rows: (Omit<KnownRow, 'id'> & { readonly key: string })[] = [];
      const values: Cell[] = [];
      for (const { key, position, document } of part) {
        const cells = this.#cellsOf(document);
        const text = JSON.stringify(document);
        values.push(key, position);
        for (const cell of cells) values.push(cell);
        values.push(text);
        rows.push({ key, position, cells, document, size: text.length });
      }
      const statement = many ? this.#insertManyStatement() : this.#insertOne;
      const { lastInsertRowid } = statement.run(...values);
      // Each id is one more than the previous one.
      let id = Number(lastInsertRowid) - rows.length;
      for (const { key, position, cells, document, size } of rows) {
        id += 1;
        this.#tallies.move(null, cells);
        this.#remember(key, { id, position, cells, document, size });
      }
    }
  }

  #insertManyStatement(): Prepared {
    return (this.#insertMany ??= this.#database.prepare(
      this.#insertion + `, ${this.#row}`.repeat(ROWS_PER_INSERT - 1),
    ));
  }

  #cellsOf(document: JsonObject): readonly Cell[] {
    const cells: Cell[] = [];
    for (const column of this.#columns) cells.push(cellOf(column, document));
    return cells;
  }

  #put(key: string, position: Position, document: JsonObject): void {
    const cells = this.#cellsOf(document);
    const text = JSON.stringify(document);
    const size = text.length;
    // During a bulk fill most are new: insert first, and look up only on a collision.
    const isNew = this.#bulk || this.#absent.has(key);
    const row = this.#recent.get(key) ?? (isNew ? undefined : this.#rowOf(key));
    if (row === undefined) {
      this.#ensureKeyIndex();
      const id = this.#add(key, position, cells, text);
      if (id !== null) {
        this.#remember(key, { id, position, cells, document, size });
        return;
      }
    }
    const stored = row ?? this.#rowOf(key);
    if (stored === undefined || stored.position >= position) return;
    this.#change(stored, position, cells, text);
    this.#remember(key, { id: stored.id, position, cells, document, size });
  }

  /** Remembers a written row, unless it is finished: long-lived objects cost the garbage collector. */
  #remember(key: string, row: KnownRow): void {
    if (this.#isOver(row.document)) this.#recent.delete(key);
    else this.#recent.set(key, row);
  }

  /** @returns the new row's id; null when the key exists */
  #add(key: string, position: Position, cells: readonly Cell[], text: string): number | null {
    // This statement needs the index, so it cannot be prepared earlier.
    this.#insert ??= this.#database.prepare(`${this.#insertion} ON CONFLICT (key) DO NOTHING`);
    const { changes, lastInsertRowid } = this.#insert.run(key, position, ...cells, text);
    if (changes === 0) return null;
    this.#tallies.move(null, cells);
    if (!this.#bulk) {
      for (const { place, insert } of this.#lists) {
        for (const value of entries(cells[place])) execute(insert, value, lastInsertRowid);
      }
    }
    return Number(lastInsertRowid);
  }

  #change(row: KnownRow, position: Position, cells: readonly Cell[], text: string): void {
    const changed: number[] = [];
    const values: Cell[] = [position, text];
    for (let i = 0; i < cells.length; i += 1) {
      if (cells[i] === row.cells[i]) continue;
      changed.push(i);
      values.push(cells[i] ?? null);
    }
    values.push(row.id);
    execute(this.#update(changed), ...values);
    if (changed.length > 0) this.#tallies.move(row.cells, cells);
    if (this.#bulk) return;
    for (const { place, insert, remove } of this.#lists) {
      if (!changed.includes(place)) continue;
      const before = new Set(entries(row.cells[place]));
      const after = new Set(entries(cells[place]));
      for (const value of before) if (!after.has(value)) execute(remove, value, row.id);
      for (const value of after) if (!before.has(value)) execute(insert, value, row.id);
    }
  }

  #remove(key: string, position: Position): void {
    const row = this.#rowOf(key);
    if (row === undefined || row.position >= position) return;
    this.#recent.delete(key);
    execute(this.#delete, row.id);
    this.#tallies.move(row.cells, null);
    if (this.#bulk) return;
    for (const { place, remove } of this.#lists) {
      for (const value of entries(row.cells[place])) execute(remove, value, row.id);
    }
  }

  #update(changed: readonly number[]): Prepared {
    const shape = changed.join();
    let statement = this.#updates.get(shape);
    if (statement === undefined) {
      if (this.#updates.size >= MAX_PREPARED_UPDATES) this.#updates.clear();
      const sets = changed.map((i) => `, ${this.#columns[i]?.name ?? ''} = ?`).join('');
      statement = this.#database.prepare(
        `UPDATE documents SET position = ?, document = ?${sets} WHERE id = ?`,
      );
      this.#updates.set(shape, statement);
    }
    return statement;
  }
}

/** The strings of a string list's cell. */
function entries(cell: Cell | undefined): readonly string[] {
  return typeof cell === 'string' ? (JSON.parse(cell) as readonly string[]) : [];
}
