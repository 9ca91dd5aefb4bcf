import type { JsonObject } from '../../../domain/json.ts';
import type { KeptDocument } from '../../../projections/read-model.ts';
import { openDatabase, type Database } from '../database.ts';
import { fileNumber } from '../database-file.ts';
import { LAYOUT_VERSION } from './view-table.ts';

let opened = 0;

/**
 * The reading side of one generation on the calling thread: a document by its key and the checkpoint, about
 * 10 µs each, for which a way to another thread would cost more than the reading.
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

  /** @throws the driver's errors: `cannot-open` when the file has gone */
  constructor(file: string, generation: number) {
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
      busyTimeout: 200,
      cacheMiB: 8,
    });
    this.#selectDocument = this.#database.prepare(
      'SELECT position, document FROM documents WHERE key = ?',
    );
    this.#selectDocument.setReturnArrays(true);
    this.#selectCheckpoint = this.#database.prepare('SELECT position FROM checkpoint');
    this.#selectCheckpoint.setReturnArrays(true);
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

  checkpoint(): string {
    const row = this.#selectCheckpoint.get() as [string] | undefined;
    return row?.[0] ?? '';
  }

  close(): void {
    this.#database.close();
  }
}
