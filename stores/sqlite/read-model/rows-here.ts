import type { Position } from '../../../domain/event-store.ts';
import { ReadModelError } from '../../../projections/read-model.ts';
import type { Database } from '../database.ts';
import { fileNumber } from '../database-file.ts';
import { DocumentTable } from './document-table.ts';
import { finishFilling } from './finish-filling.ts';
import type { KeptRow, KnownRow, RowBatch, RowShape, ViewRows } from './view-rows.ts';
import type { Column } from './view-table.ts';

/**
 * Documents to a commit while filling in bulk: a page that many batches change is written once for all of
 * them. A fill that is cut short goes on from the last commit.
 */
const COMMIT_WHEN_FILLING = 50_000;

/** A generation's file, open for writing, with its tables. */
export interface OpenRows {
  readonly shape: RowShape;
  readonly columns: readonly Column[];
  readonly file: string;
  readonly database: Database;
  readonly fence: number;
  /** Filling a generation that nobody reads yet. */
  readonly bulk: boolean;
}

/**
 * Writes the rows of one generation on the calling thread. Rows and checkpoint go in one transaction, so a batch counts
 * whole or not at all, and there is nothing for a tombstone to protect: a repeated batch is refused by the checkpoint.
 */
export class RowsHere implements ViewRows {
  readonly #open: OpenRows;
  readonly #table: DocumentTable;
  readonly #fileNumber: number | undefined;
  readonly #selectCheckpoint;
  readonly #updateCheckpoint;
  #filling: boolean;
  /** Documents of batches that are written, but not committed yet. */
  #uncommitted = 0;

  constructor(open: OpenRows) {
    const { database, columns, file, bulk, shape } = open;
    this.#open = open;
    this.#filling = bulk;
    this.#fileNumber = fileNumber(file);
    this.#table = new DocumentTable(database, shape, columns, bulk);
    this.#selectCheckpoint = database.prepare('SELECT position, fence FROM checkpoint');
    this.#selectCheckpoint.setReturnArrays(true);
    this.#updateCheckpoint = database.prepare('UPDATE checkpoint SET position = ?, fence = ?');
  }

  checkpoint(): Position {
    // Whoever asks anew goes on from what it is, whoever wrote it.
    this.#table.forget();
    this.#requireFile();
    return this.#checkpoint().position;
  }

  load(keys: readonly string[]): readonly KeptRow[] {
    this.#requireFile();
    return this.#table.load(keys);
  }

  write(batch: RowBatch): void {
    this.#requireFile();
    const { database, fence } = this.#open;
    if (!database.isTransaction) database.exec('BEGIN IMMEDIATE');
    try {
      this.#requireTurn(batch.from);
      this.#uncommitted += Math.max(1, batch.rows.length);
      this.#table.write(batch.rows);
      this.#updateCheckpoint.run(batch.to, fence);
      if (!this.#filling || this.#uncommitted >= COMMIT_WHEN_FILLING) this.#commit();
    } catch (error) {
      // A batch that is merely refused takes nothing back of those before it.
      this.#table.forget();
      const refused = error instanceof ReadModelError && this.#uncommitted > 0;
      if (!refused) this.#rollback();
      throw error;
    }
  }

  page(after: string | null, limit: number): readonly KeptRow[] {
    this.#requireFile();
    return this.#table.page(after, limit);
  }

  count(): number {
    this.#requireFile();
    return this.#table.count();
  }

  finish(): void {
    if (!this.#filling) return;
    this.#requireFile();
    this.#commit();
    finishFilling(this.#open.database, this.#open.shape, this.#open.columns);
    this.#filling = false;
    this.#table.endBulk();
  }

  close(): void {
    const { database, file } = this.#open;
    if (!database.isOpen) return;
    // The driver lets go of the file only when its statements are collected, and would move the WAL then,
    // on whatever thread that is. A file that was thrown away is not worth it.
    const worthIt = fileNumber(file) === this.#fileNumber;
    try {
      if (worthIt) {
        this.#commit();
        database.exec('PRAGMA wal_checkpoint(PASSIVE)');
      }
    } finally {
      database.close();
    }
  }

  /** What it has remembered of its rows, for whoever goes on with the file. */
  remembered(): readonly (readonly [string, KnownRow])[] {
    return this.#table.remembered();
  }

  /** Takes over what another has remembered, who writes no more. */
  remember(rows: readonly (readonly [string, KnownRow])[]): void {
    this.#table.remember(rows);
  }

  /** Refuses to go on with a file that was thrown away or made anew since, or that could not be closed in order. */
  #requireFile(): void {
    if (!this.#open.database.isOpen) {
      throw new ReadModelError('UNAVAILABLE', 'the writer of this view is closed');
    }
    if (fileNumber(this.#open.file) !== this.#fileNumber) throw fenced('its file was thrown away');
  }

  /** @throws ReadModelError `FENCED` when another has written, or the checkpoint is elsewhere */
  #requireTurn(from: Position): void {
    const { position, fence } = this.#checkpoint();
    if (fence > this.#open.fence) throw fenced(`a writer with the fence ${String(fence)} is at it`);
    if (position !== from) throw fenced(`its checkpoint is "${position}", not "${from}"`);
  }

  #commit(): void {
    if (this.#open.database.isTransaction) this.#open.database.exec('COMMIT');
    this.#uncommitted = 0;
  }

  #rollback(): void {
    if (this.#open.database.isTransaction) this.#open.database.exec('ROLLBACK');
    this.#uncommitted = 0;
    // Only now: what is there is looked up.
    this.#table.forget();
  }

  #checkpoint(): { readonly position: Position; readonly fence: number } {
    const row = this.#selectCheckpoint.get() as [string, number] | undefined;
    return { position: row?.[0] ?? '', fence: row?.[1] ?? 0 };
  }
}

/** The error of a writer whose turn is over. */
export function fenced(why: string): ReadModelError {
  return new ReadModelError('FENCED', `the view is not this writer's to write any more: ${why}`);
}
