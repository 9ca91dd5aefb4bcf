import type { Database, Statement as Prepared } from '../database.ts';
import { MOST_TEXT_WHEN_FILLING, Recent } from './recent.ts';
import { Tallies } from './tallies.ts';
import type { KeptRow, KnownRow, RowChange, RowShape } from './view-rows.ts';
import { createKeyIndex, hasKeyIndex, listTable, type Cell, type Column } from './view-table.ts';

/** A change that leaves a row. */
type Put = RowChange & { readonly text: string };

/** Update statements kept prepared, by the columns they set. */
const KEPT_UPDATES = 128;

/** Rows that are added together where nothing is to be looked for: a call costs about what a row of its own does. */
const ROWS_AT_ONCE = 16;

/** A row as it is read: id, position, length of the document's text, then the columns. */
type Row = readonly [number, string, number, ...Cell[]];
/** The same of one that is asked for with its document: key and text come first. */
type RowWithText = readonly [string, string, number, string, ...Cell[]];

/**
 * Reads and writes the rows of `documents` and of the text-lists, inside the caller's transaction.
 *
 * A row is read before it is changed, and only the columns that differ are set: SQLite then leaves the
 * indexes of all others alone, which makes a typical update three times as fast.
 *
 * In bulk there is no index over the keys until one is looked for that is not remembered: sorted at the end it costs
 * less than random places of it do with every commit.
 */
export class DocumentTable {
  readonly #database: Database;
  readonly #shape: RowShape;
  readonly #columns: readonly Column[];
  #tallies: Tallies | null;
  readonly #lists: readonly {
    readonly place: number;
    readonly insert: Prepared;
    readonly remove: Prepared;
  }[];
  readonly #select: Prepared;
  /** Without looking whether the key is there. */
  readonly #insertOne: Prepared;
  /** The same for {@link ROWS_AT_ONCE} rows. */
  #insertMany: Prepared | null = null;
  readonly #insertion: string;
  /** A row's values, as {@link #insertion} ends with them. */
  readonly #row: string;
  #insert: Prepared | null = null;
  readonly #delete: Prepared;
  readonly #updates = new Map<string, Prepared>();
  #recent: Recent<KnownRow>;
  /** Keys that were looked for since the last writing, and not found: they are added without another look. */
  #absent = new Set<string>();
  readonly #load: Prepared;
  #bulk: boolean;
  /** Whether there is an index over the keys; null: to be looked up. */
  #hasKeys: boolean | null = null;

  /** @param bulk most documents are new, and the text-lists and tallies are filled later */
  constructor(database: Database, shape: RowShape, columns: readonly Column[], bulk: boolean) {
    this.#database = database;
    this.#shape = shape;
    this.#tallies = bulk ? null : new Tallies(database, shape, columns);
    this.#columns = columns;
    this.#bulk = bulk;
    this.#recent = new Recent<KnownRow>(bulk ? MOST_TEXT_WHEN_FILLING : undefined);
    const names = columns.map(({ name }) => `${name}, `).join('');
    this.#select = database.prepare(
      `SELECT ${['id', 'position', 'length(document)', ...columns.map(({ name }) => name)].join(', ')} FROM documents WHERE key = ?`,
    );
    this.#select.setReturnArrays(true);
    this.#load = database.prepare(
      `SELECT ${['documents.key', 'document', 'documents.id', 'position', ...columns.map(({ name }) => name)].join(', ')}
       FROM json_each(?) AS wanted CROSS JOIN documents ON documents.key = wanted.value`,
    );
    this.#load.setReturnArrays(true);
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

  /** From here on the text-lists and tallies are kept up as well. */
  endBulk(): void {
    this.#bulk = false;
    this.#hasKeys = true;
    this.#recent = new Recent<KnownRow>();
    this.#tallies = new Tallies(this.#database, this.#shape, this.#columns);
  }

  /** What is remembered of the rows, for another table over the same file; see {@link remember}. */
  remembered(): readonly (readonly [string, KnownRow])[] {
    return this.#recent.all();
  }

  /** Takes over what another table over the same file has remembered, which writes no more. */
  remember(rows: readonly (readonly [string, KnownRow])[]): void {
    for (const [key, row] of rows) this.#recent.set(key, row);
  }

  load(keys: readonly string[]): readonly KeptRow[] {
    this.#needKeys();
    const rows = this.#load.all(JSON.stringify(keys)) as unknown as RowWithText[];
    const absent = new Set(keys);
    const found = rows.map(([key, text, id, position, ...cells]) => {
      absent.delete(key);
      this.#recent.set(key, { id, position, cells, size: text.length });
      return { key, position, text };
    });
    this.#absent = absent;
    return found;
  }

  /** The rows after a key, by key. */
  page(after: string | null, limit: number): readonly KeptRow[] {
    return this.#database
      .prepare(
        'SELECT key, position, document AS text FROM documents WHERE key > ?1 OR ?1 IS NULL ORDER BY key LIMIT ?2',
      )
      .all(after, limit);
  }

  count(): number {
    const row = this.#database.prepare('SELECT count(*) AS documents FROM documents').get();
    return Number((row as { documents: number }).documents);
  }

  /** Somebody else may have written: what is remembered of the rows counts no longer. */
  forget(): void {
    this.#recent.forget();
    this.#absent.clear();
    this.#tallies?.forget();
    this.#hasKeys = null;
  }

  #known(key: string): KnownRow | undefined {
    const recent = this.#recent.get(key);
    if (recent !== undefined) return recent;
    this.#needKeys();
    const found = this.#select.get(key) as Row | undefined;
    if (found === undefined) return undefined;
    const [id, position, size, ...cells] = found;
    const row = { id, position, cells, size };
    this.#recent.set(key, row);
    return row;
  }

  #isKeyed(): boolean {
    return (this.#hasKeys ??= hasKeyIndex(this.#database));
  }

  /** Before a key is looked for. */
  #needKeys(): void {
    if (this.#isKeyed()) return;
    createKeyIndex(this.#database);
    this.#hasKeys = true;
  }

  write(changes: readonly RowChange[]): void {
    const firsts: Put[] = [];
    for (const change of changes) {
      if (!leavesRow(change)) {
        if (!change.isFirst) this.#remove(change);
      } else if (change.isFirst) firsts.push(change);
      else this.#put(change);
    }
    // Last: what was there before is still remembered until then, and need not be looked for.
    if (firsts.length > 0 && !this.#isKeyed()) this.#append(firsts);
    else for (const change of firsts) this.#put(change);
    this.#absent.clear();
    this.#tallies?.flush();
  }

  /** Adds rows without looking whether their keys are there. */
  #append(firsts: readonly Put[]): void {
    for (let at = 0; at < firsts.length;) {
      const many = firsts.length - at >= ROWS_AT_ONCE;
      const part = firsts.slice(at, at + (many ? ROWS_AT_ONCE : 1));
      at += part.length;
      const values: Cell[] = [];
      for (const { key, position, cells, text } of part) {
        values.push(key, position);
        for (const cell of cells) values.push(cell);
        values.push(text);
      }
      const statement = many ? this.#forMany() : this.#insertOne;
      const { lastInsertRowid } = statement.run(...values);
      // Each is put behind the last.
      let id = Number(lastInsertRowid) - part.length;
      for (const { key, position, cells, text } of part) {
        id += 1;
        this.#recent.set(key, { id, position, cells, size: text.length });
      }
    }
  }

  #forMany(): Prepared {
    return (this.#insertMany ??= this.#database.prepare(
      this.#insertion + `, ${this.#row}`.repeat(ROWS_AT_ONCE - 1),
    ));
  }

  #put({ key, position, cells, text }: Put): void {
    const size = text.length;
    // While filling most are new: try that first, and look only when it was there.
    const isNew = this.#bulk || this.#absent.has(key);
    const row = this.#recent.get(key) ?? (isNew ? undefined : this.#known(key));
    if (row === undefined) {
      this.#needKeys();
      const id = this.#add(key, position, cells, text);
      if (id !== null) {
        this.#recent.set(key, { id, position, cells, size });
        return;
      }
    }
    const there = row ?? this.#known(key);
    if (there === undefined || there.position >= position) return;
    this.#change(there, position, cells, text);
    this.#recent.set(key, { id: there.id, position, cells, size });
  }

  /** @returns the new row's id; null when there is a row of this key */
  #add(key: string, position: string, cells: readonly Cell[], text: string): number | null {
    // It can't be prepared before there is the index.
    this.#insert ??= this.#database.prepare(`${this.#insertion} ON CONFLICT (key) DO NOTHING`);
    const { changes, lastInsertRowid } = this.#insert.run(key, position, ...cells, text);
    if (changes === 0) return null;
    this.#tallies?.move(null, cells);
    if (!this.#bulk) {
      for (const { place, insert } of this.#lists) {
        for (const value of entries(cells[place])) insert.run(value, lastInsertRowid);
      }
    }
    return Number(lastInsertRowid);
  }

  #change(row: KnownRow, position: string, cells: readonly Cell[], text: string): void {
    const changed: number[] = [];
    for (let i = 0; i < cells.length; i += 1) if (cells[i] !== row.cells[i]) changed.push(i);
    this.#update(changed).run(position, text, ...changed.map((i) => cells[i] ?? null), row.id);
    if (changed.length > 0) this.#tallies?.move(row.cells, cells);
    if (this.#bulk) return;
    for (const { place, insert, remove } of this.#lists) {
      if (!changed.includes(place)) continue;
      const before = new Set(entries(row.cells[place]));
      const after = new Set(entries(cells[place]));
      for (const value of before) if (!after.has(value)) remove.run(value, row.id);
      for (const value of after) if (!before.has(value)) insert.run(value, row.id);
    }
  }

  #remove({ key, position }: RowChange): void {
    const row = this.#known(key);
    if (row === undefined || row.position >= position) return;
    this.#recent.delete(key);
    this.#delete.run(row.id);
    this.#tallies?.move(row.cells, null);
    if (this.#bulk) return;
    for (const { place, remove } of this.#lists) {
      for (const value of entries(row.cells[place])) remove.run(value, row.id);
    }
  }

  #update(changed: readonly number[]): Prepared {
    const shape = changed.join();
    let statement = this.#updates.get(shape);
    if (statement === undefined) {
      if (this.#updates.size >= KEPT_UPDATES) this.#updates.clear();
      const sets = changed.map((i) => `, ${this.#columns[i]?.name ?? ''} = ?`).join('');
      statement = this.#database.prepare(
        `UPDATE documents SET position = ?, document = ?${sets} WHERE id = ?`,
      );
      this.#updates.set(shape, statement);
    }
    return statement;
  }
}

function leavesRow(change: RowChange): change is Put {
  return change.text !== null;
}

/** The texts of a text-list's cell. */
function entries(cell: Cell | undefined): readonly string[] {
  return typeof cell === 'string' ? (JSON.parse(cell) as readonly string[]) : [];
}
