import type { Position } from '../../../domain/event-store.ts';
import type { StreamShare } from '../../../domain/stream-share.ts';
import {
  ReadModelError,
  type ViewDocument,
  type Projection,
  type ViewWriter,
} from '../../../projections/read-model.ts';
import { execute, inTransaction, prepareForArrays, type Database } from '../database.ts';
import { fileNumber } from '../database-file.ts';
import { DocumentTable } from './document-table.ts';
import { fillMark } from './filling/fill-mark.ts';
import { finishFilling } from './filling/finish-filling.ts';
import type { OtherShares } from './filling/other-shares.ts';
import { createTallies } from './tallies.ts';
import type { Column } from './view-table.ts';
import { ViewWal } from './view-wal.ts';

/** Documents per commit during a bulk fill: a page changed by many batches is written once. */
const DOCUMENTS_PER_COMMIT_WHEN_FILLING = 50_000;

/** The parts that a writer needs; the file is open and has its tables. */
export interface WriterSetup {
  readonly projection: Projection;
  readonly columns: readonly Column[];
  readonly file: string;
  readonly database: Database;
  readonly fence: number;
  /** Whether it fills a generation that nobody reads yet. */
  readonly bulk: boolean;
  /** The share that it holds, where it is not whole. */
  readonly share: StreamShare | null;
  readonly otherShares: OtherShares;
  /** Translates a driver error, and deletes a damaged file. */
  readonly errorOf: (error: unknown) => unknown;
  /** Called after closing. */
  readonly closed: (writer: ViewWriter) => void;
}

/** Writes one generation. Documents and checkpoint share a transaction, so the checkpoint refuses a repeated batch. */
export class SqliteViewWriter implements ViewWriter {
  readonly #setup: WriterSetup;
  readonly #table: DocumentTable;
  readonly #fileNumber: number | undefined;
  readonly #wal: ViewWal;
  readonly #selectCheckpoint;
  readonly #updateCheckpoint;
  #filling: boolean;
  #share: StreamShare | null;
  /** Documents written but not committed. */
  #uncommitted = 0;

  constructor(setup: WriterSetup) {
    const { database, columns, file, bulk } = setup;
    this.#setup = setup;
    this.#filling = bulk;
    this.#share = setup.share;
    this.#fileNumber = fileNumber(file);
    this.#wal = new ViewWal(database, `${file}-wal`);
    this.#table = new DocumentTable(database, setup.projection, columns, bulk);
    this.#selectCheckpoint = prepareForArrays(
      database,
      'SELECT position, fence, filling FROM checkpoint',
    );
    this.#updateCheckpoint = database.prepare(
      'UPDATE checkpoint SET position = ?, fence = ?, landmark = coalesce(?, landmark)',
    );
  }

  get share(): StreamShare | null {
    return this.#share;
  }

  async mergeShares(): Promise<void> {
    if (this.#share === null) return;
    const { database, columns, otherShares, fence } = this.#setup;
    this.#guarded(() => {
      this.#commit();
      this.#requireOwnership(this.#checkpoint().position);
      // The remembered rows and pages do not include the merged documents.
      this.#table.forget();
      otherShares.mergeInto(database, columns, fence);
      this.#share = null;
    });
  }

  async checkpoint(): Promise<Position> {
    // The caller continues from the stored checkpoint, even if another writer wrote it.
    this.#table.forget();
    return this.#guarded(() => this.#checkpoint().position);
  }

  /** Recounts the tallies: an older release leaves them to the end of a fill. */
  recount(): void {
    const { database, projection, columns } = this.#setup;
    this.#guarded(() =>
      inTransaction(database, () => createTallies(database, projection, columns)),
    );
  }

  async load(keys: readonly string[]): ReturnType<ViewWriter['load']> {
    return this.#guarded(() => this.#table.load(keys));
  }

  async write(batch: Parameters<ViewWriter['write']>[0]): Promise<void> {
    this.#guarded(() => {
      const { database, fence } = this.#setup;
      if (!this.#filling) this.#wal.sync();
      if (!database.isTransaction) database.exec('BEGIN IMMEDIATE');
      try {
        this.#requireOwnership(batch.from);
        this.#uncommitted += Math.max(1, batch.documents.length);
        this.#table.write(batch.documents);
        const { to, landmark } = batch;
        execute(this.#updateCheckpoint, to, fence, landmark ? JSON.stringify(landmark) : null);
        if (!this.#filling || this.#uncommitted >= DOCUMENTS_PER_COMMIT_WHEN_FILLING)
          this.#commit();
      } catch (error) {
        // Refusing a batch does not undo earlier, uncommitted ones.
        this.#table.forget();
        const refused = error instanceof ReadModelError && this.#uncommitted > 0;
        if (!refused) this.#rollback();
        throw error;
      }
    });
  }

  async page(after: string | null, limit: number): Promise<readonly ViewDocument[]> {
    return this.#guarded(() => this.#table.page(after, limit));
  }

  async count(): Promise<number> {
    return this.#guarded(() => this.#table.count());
  }

  async finish(): Promise<void> {
    if (!this.#filling) return;
    this.#guarded(() => {
      this.#commit();
      finishFilling(this.#setup.database, this.#setup.projection, this.#setup.columns);
      this.#filling = false;
      this.#table.endBulk();
      this.#setup.otherShares.deleteLeftovers();
    });
  }

  async close(): Promise<void> {
    const { database, file, closed } = this.#setup;
    if (!database.isOpen) return;
    await this.#wal.settled();
    // The database may have been closed in the meantime.
    if (!database.isOpen) return;
    // The driver would move the WAL only when its statements are collected, on any thread. A deleted file is not worth
    // it.
    const worthIt = fileNumber(file) === this.#fileNumber;
    try {
      if (worthIt) {
        this.#commit();
        // This moves as much of the WAL as readers allow.
        database.exec('PRAGMA busy_timeout = 0');
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      }
    } catch (error) {
      throw this.#setup.errorOf(error);
    } finally {
      database.close();
      closed(this);
    }
  }

  /** @throws ReadModelError `FENCED` when another writer has written, or the checkpoint is elsewhere */
  #requireOwnership(from: Position): void {
    const { position, fence, filling } = this.#checkpoint();
    if (fence > this.#setup.fence) {
      throw fencedError(`a writer with fence ${fence} has taken over from ${this.#setup.fence}`);
    }
    if (position !== from) throw fencedError(`the checkpoint is "${position}", not "${from}"`);
    // Another writer has merged the shares; this checkpoint would count for the whole.
    if (this.#share !== null && filling !== fillMark(this.#share)) {
      throw fencedError('its shares have been merged');
    }
  }

  #commit(): void {
    if (this.#setup.database.isTransaction) this.#setup.database.exec('COMMIT');
    this.#uncommitted = 0;
  }

  #rollback(): void {
    if (this.#setup.database.isTransaction) this.#setup.database.exec('ROLLBACK');
    this.#uncommitted = 0;
    // The remembered rows may belong to the transaction that was rolled back.
    this.#table.forget();
  }

  #checkpoint(): {
    readonly position: Position;
    readonly fence: number;
    readonly filling: string | null;
  } {
    const row = this.#selectCheckpoint.get() as [string, number, string | null] | undefined;
    return { position: row?.[0] ?? '', fence: row?.[1] ?? 0, filling: row?.[2] ?? null };
  }

  /** Refuses to continue with a deleted or recreated file; translates the driver's errors. */
  #guarded<T>(action: () => T): T {
    if (!this.#setup.database.isOpen) {
      throw new ReadModelError('UNAVAILABLE', 'the writer of this view is closed');
    }
    if (fileNumber(this.#setup.file) !== this.#fileNumber) {
      throw fencedError('its file was deleted');
    }
    try {
      return action();
    } catch (error) {
      throw this.#setup.errorOf(error);
    }
  }
}

function fencedError(why: string): ReadModelError {
  return new ReadModelError('FENCED', `the view belongs to another writer now: ${why}`);
}
