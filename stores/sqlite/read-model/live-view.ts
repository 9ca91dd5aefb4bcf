import type { Landmark } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { ViewDocument } from '../../../projections/read-model.ts';
import type { Database } from '../database.ts';
import { fileNumber } from '../database-file.ts';
import { StatementCache } from '../statement-cache.ts';
import type { Statement } from './query-sql.ts';
import { hasLandmark, openView } from './view-table.ts';

let opened = 0;

/**
 * Reads one generation on the calling thread: a document by key, a point query, or the checkpoint. Each takes about
 * 10 µs, less than the way to another thread.
 */
export class LiveView {
  /** Distinguishes this opening of the file from any other in this process. */
  readonly number: number;
  readonly generation: number;
  readonly file: string;
  /** See `fileNumber`. */
  readonly fileNumber: number | undefined;
  readonly #database: Database;
  readonly #statements: StatementCache;

  /**
   * @param immutable whether no file may be created beside it; see `DatabaseOptions`
   * @throws the driver's errors: `cannot-open` when the file is gone
   */
  constructor(file: string, generation: number, immutable: boolean) {
    opened += 1;
    this.number = opened;
    this.generation = generation;
    this.file = file;
    this.fileNumber = fileNumber(file);
    this.#database = openView(file, immutable, 200);
    this.#statements = new StatementCache(this.#database);
  }

  /** Whether the path still leads to the open file. */
  isCurrent(): boolean {
    return fileNumber(this.file) === this.fileNumber;
  }

  get<D extends JsonObject>(key: string): ViewDocument<D> | null {
    const row = this.#row('SELECT position, document FROM documents WHERE key = ?', key);
    if (row === undefined) return null;
    return { key, position: String(row[0]), document: JSON.parse(String(row[1])) as D };
  }

  /** Runs a point query. */
  find<D extends JsonObject>(
    { sql, parameters }: Statement,
    limit: number,
  ): readonly ViewDocument<D>[] {
    const rows = this.#statements.prepared(sql).all(limit, ...parameters);
    return (rows as [string, string, string][]).map(([key, position, json]) => {
      return { key, position, document: JSON.parse(json) as D };
    });
  }

  checkpoint(): string {
    const position = this.#row('SELECT position FROM checkpoint')?.[0];
    return typeof position === 'string' ? position : '';
  }

  /** The landmark as the writer left it, or null. */
  landmark(): Landmark | null {
    // Rarely read, and a writer of this release may have added the column since this file was opened.
    if (!hasLandmark(this.#database)) return null;
    const json = this.#row('SELECT landmark FROM checkpoint')?.[0];
    return typeof json === 'string' ? (JSON.parse(json) as Landmark) : null;
  }

  /** Stays the same while this opening lasts and no other connection commits. */
  version(): string {
    return `${this.number}.${String(this.#row('PRAGMA data_version')?.[0])}`;
  }

  close(): void {
    this.#database.close();
  }

  #row(sql: string, ...values: string[]): readonly unknown[] | undefined {
    return this.#statements.prepared(sql).get(...values) as readonly unknown[] | undefined;
  }
}
