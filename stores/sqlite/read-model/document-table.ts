import type { Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { Database, Statement as Prepared } from '../database.ts';
import { cellOf, listTable, type Cell, type Column } from './view-table.ts';

/** A document to be written; null deletes. */
export interface DocumentChange {
  readonly key: string;
  readonly position: Position;
  readonly document: JsonObject | null;
}

/** Update statements kept prepared, by the columns they set. */
const KEPT_UPDATES = 128;

/** A row as it is before a write: id, position, then the columns. */
type Row = readonly [number, string, ...Cell[]];

/**
 * Reads and writes the rows of `documents` and of the text-lists, inside the caller's transaction.
 *
 * A row is read before it is changed, and only the columns that differ are set: SQLite then leaves the
 * indexes of all others alone, which makes a typical update three times as fast.
 */
export class DocumentTable {
  readonly #database: Database;
  readonly #columns: readonly Column[];
  readonly #lists: readonly {
    readonly place: number;
    readonly insert: Prepared;
    readonly remove: Prepared;
  }[];
  readonly #select: Prepared;
  readonly #insert: Prepared;
  readonly #delete: Prepared;
  readonly #updates = new Map<string, Prepared>();
  readonly #load: Prepared;
  #bulk: boolean;

  /** @param bulk most documents are new, and the text-lists are filled later */
  constructor(database: Database, columns: readonly Column[], bulk: boolean) {
    this.#database = database;
    this.#columns = columns;
    this.#bulk = bulk;
    const names = columns.map(({ name }) => `${name}, `).join('');
    this.#select = database.prepare(
      `SELECT ${['id', 'position', ...columns.map(({ name }) => name)].join(', ')} FROM documents WHERE key = ?`,
    );
    this.#select.setReturnArrays(true);
    this.#load = database.prepare(
      `SELECT documents.key, position, document
       FROM json_each(?) AS wanted CROSS JOIN documents ON documents.key = wanted.value`,
    );
    this.#load.setReturnArrays(true);
    this.#insert = database.prepare(
      `INSERT INTO documents (key, position, ${names}document) VALUES (?, ?, ${'?, '.repeat(columns.length)}?)
       ON CONFLICT (key) DO NOTHING`,
    );
    this.#delete = database.prepare('DELETE FROM documents WHERE id = ?');
    this.#lists = columns.flatMap((column, place) => {
      if (column.kind !== 'text-list') return [];
      const table = listTable(column);
      const insert = database.prepare(`INSERT OR IGNORE INTO ${table} (value, id) VALUES (?, ?)`);
      const remove = database.prepare(`DELETE FROM ${table} WHERE value = ? AND id = ?`);
      return [{ place, insert, remove }];
    });
  }

  /** From here on the text-lists are kept up as well. */
  endBulk(): void {
    this.#bulk = false;
  }

  load(
    keys: readonly string[],
  ): ReadonlyMap<string, { readonly position: Position; readonly document: JsonObject | null }> {
    const found = new Map<string, { position: Position; document: JsonObject | null }>();
    if (keys.length === 0) return found;
    const rows = this.#load.all(JSON.stringify(keys)) as [string, string, string][];
    for (const [key, position, text] of rows) {
      found.set(key, { position, document: JSON.parse(text) as JsonObject });
    }
    return found;
  }

  write(changes: readonly DocumentChange[]): void {
    for (const change of changes) {
      if (change.document === null) this.#remove(change);
      else this.#put(change.key, change.position, change.document);
    }
  }

  #put(key: string, position: Position, document: JsonObject): void {
    const cells = this.#columns.map((column) => cellOf(column, document));
    const text = JSON.stringify(document);
    // While filling most are new: try that first, and look only when it was there.
    if (this.#bulk && this.#add(key, position, cells, text)) return;
    const row = this.#select.get(key) as Row | undefined;
    if (row === undefined) this.#add(key, position, cells, text);
    else if (row[1] < position) this.#change(row, position, cells, text);
  }

  #add(key: string, position: Position, cells: readonly Cell[], text: string): boolean {
    const { changes, lastInsertRowid } = this.#insert.run(key, position, ...cells, text);
    if (changes === 0) return false;
    if (!this.#bulk) {
      for (const { place, insert } of this.#lists) {
        for (const value of entries(cells[place])) insert.run(value, lastInsertRowid);
      }
    }
    return true;
  }

  #change(row: Row, position: Position, cells: readonly Cell[], text: string): void {
    const changed = this.#columns.flatMap((_, i) => (cells[i] === row[i + 2] ? [] : [i]));
    this.#update(changed).run(position, text, ...changed.map((i) => cells[i] ?? null), row[0]);
    if (this.#bulk) return;
    for (const { place, insert, remove } of this.#lists) {
      if (!changed.includes(place)) continue;
      const before = new Set(entries(row[place + 2]));
      const after = new Set(entries(cells[place]));
      for (const value of before) if (!after.has(value)) remove.run(value, row[0]);
      for (const value of after) if (!before.has(value)) insert.run(value, row[0]);
    }
  }

  #remove({ key, position }: DocumentChange): void {
    const row = this.#select.get(key) as Row | undefined;
    if (row === undefined || row[1] >= position) return;
    this.#delete.run(row[0]);
    if (this.#bulk) return;
    for (const { place, remove } of this.#lists) {
      for (const value of entries(row[place + 2])) remove.run(value, row[0]);
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

/** The texts of a text-list's cell. */
function entries(cell: Cell | undefined): readonly string[] {
  return typeof cell === 'string' ? (JSON.parse(cell) as readonly string[]) : [];
}
