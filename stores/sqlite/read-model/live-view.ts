import type { Landmark } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { KeptDocument } from '../../../projections/read-model.ts';
import {
  openDatabase,
  prepareForArrays,
  type Database,
  type Statement as Prepared,
} from '../database.ts';
import { fileNumber } from '../database-file.ts';
import type { Statement } from './query-sql.ts';
import { hasLandmark, LAYOUT_VERSION } from './view-table.ts';

let opened = 0;

/** Statements kept prepared, by their text; the queries of this kind are few. */
const KEPT_STATEMENTS = 50;

/**
 * The reading side of one generation on the calling thread: a document by its key or at a known place of an index,
 * and the checkpoint, about 10 µs each, for which a way to another thread would cost more than the reading.
 */
export class LiveView {
  /** Tells this opening of the file from any other of this process. */
  readonly number: number;
  readonly generation: number;
  readonly file: string;
  /** Which file it is; see `fileNumber`. */
  readonly fileNumber: number | undefined;
  readonly #database: Database;
  readonly #selectDocument;
  readonly #selectCheckpoint;
  readonly #selectVersion;
  readonly #statements = new Map<string, Prepared>();

  /**
   * @param immutable whether no file may be made beside it; see `DatabaseOptions`
   * @throws the driver's errors: `cannot-open` when the file has gone
   */
  constructor(file: string, generation: number, immutable: boolean) {
    opened += 1;
    this.number = opened;
    this.generation = generation;
    this.file = file;
    this.fileNumber = fileNumber(file);
    this.#database = openDatabase({
      file,
      what: 'view',
      version: LAYOUT_VERSION,
      migrate: () => undefined,
      readOnly: true,
      immutable,
      busyTimeout: 200,
      cacheMiB: 8,
    });
    this.#selectDocument = prepareForArrays(
      this.#database,
      'SELECT position, document FROM documents WHERE key = ?',
    );
    this.#selectCheckpoint = prepareForArrays(this.#database, 'SELECT position FROM checkpoint');
    this.#selectVersion = prepareForArrays(this.#database, 'PRAGMA data_version');
  }

  /** Whether the file under the path is still the one that is open here. */
  isCurrent(): boolean {
    return fileNumber(this.file) === this.fileNumber;
  }

  get<D extends JsonObject>(key: string): KeptDocument<D> | null {
    const row = this.#selectDocument.get(key) as [string, string] | undefined;
    if (row === undefined) return null;
    return { key, position: row[0], document: JSON.parse(row[1]) as D };
  }

  /** What a query finds that asks for something at a known place. */
  find<D extends JsonObject>(
    { sql, parameters }: Statement,
    limit: number,
  ): readonly KeptDocument<D>[] {
    const rows = this.#prepared(sql).all(limit, ...parameters) as [string, string, string][];
    return rows.map(([key, position, text]) => {
      return { key, position, document: JSON.parse(text) as D };
    });
  }

  checkpoint(): string {
    const row = this.#selectCheckpoint.get() as [string] | undefined;
    return row?.[0] ?? '';
  }

  /** As the writer has left it; null where there is none. */
  landmark(): Landmark | null {
    // Asked for seldom, and a writer of this release may have made place for it since the file was opened here.
    if (!hasLandmark(this.#database)) return null;
    const row: unknown = this.#database.prepare('SELECT landmark FROM checkpoint').get();
    const text = typeof row === 'object' && row !== null && 'landmark' in row ? row.landmark : null;
    return typeof text === 'string' ? (JSON.parse(text) as Landmark) : null;
  }

  /** The same as long as this is the same opening of the file and no other connection has committed. */
  version(): string {
    const row = this.#selectVersion.get() as [number] | undefined;
    return `${this.number}.${String(row?.[0])}`;
  }

  close(): void {
    this.#database.close();
  }

  #prepared(sql: string): Prepared {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      if (this.#statements.size >= KEPT_STATEMENTS) this.#statements.clear();
      statement = prepareForArrays(this.#database, sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
