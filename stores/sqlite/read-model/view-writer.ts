import type { Position } from '../../../domain/event-store.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { StreamShare } from '../../../domain/stream-share.ts';
import {
  ReadModelError,
  type KeptDocument,
  type Projection,
  type ViewWriter,
} from '../../../projections/read-model.ts';
import { execute, inTransaction, keepPages, prepareForArrays, type Database } from '../database.ts';
import { fileNumber } from '../database-file.ts';
import { DocumentTable } from './document-table.ts';
import { fillMark } from './fill-mark.ts';
import { createTallies } from './tallies.ts';
import { takeInShares, type ShareFile } from './taking-in.ts';
import { createIndexes, KEPT_PAGES, type Column } from './view-table.ts';
import { ViewWal } from './view-wal.ts';

/**
 * Documents to a commit while filling in bulk: a page that many batches change is written once for all of
 * them. A fill that is cut short goes on from the last commit.
 */
const COMMIT_WHEN_FILLING = 50_000;

/** Bytes of a file that are mapped while its indexes are made: all of it. SQLite itself takes up to 2 GiB of that. */
const MAPPED_WHEN_INDEXING = 2 ** 40;

/**
 * MiB of an index that are sorted in memory, and besides by how many threads: more than that is sorted in parts, and
 * the parts are merged from temporary files. In memory alone an index of ten million documents takes more than a GiB.
 */
const SORTED_AT_ONCE = 16;
const SORTING_THREADS = 1;

/** What a writer is made with; the file is open already and has its tables. */
export interface WriterSetup {
  readonly projection: Projection;
  readonly columns: readonly Column[];
  readonly file: string;
  readonly database: Database;
  readonly fence: number;
  /** Filling a generation that nobody reads yet. */
  readonly bulk: boolean;
  /** Of the generation, where it is not all of it. */
  readonly share: StreamShare | null;
  /** Of the other shares, for the first. */
  readonly others: readonly ShareFile[];
  /** Called once they are taken in. */
  readonly tookIn: () => void;
  /** Makes the port's error of what the driver threw, and throws away a damaged file. */
  readonly errorOf: (error: unknown) => unknown;
  /** Called once it is closed. */
  readonly closed: (writer: ViewWriter) => void;
}

/**
 * Writes one generation. Documents and checkpoint go in one transaction, so a batch counts whole or not at
 * all, and there is nothing for a tombstone to protect: a repeated batch is refused by the checkpoint.
 */
export class SqliteViewWriter implements ViewWriter {
  readonly #setup: WriterSetup;
  readonly #table: DocumentTable;
  readonly #fileNumber: number | undefined;
  readonly #wal: ViewWal;
  readonly #selectCheckpoint;
  readonly #updateCheckpoint;
  #filling: boolean;
  #share: StreamShare | null;
  /** Documents of batches that are written, but not committed yet. */
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

  async takeIn(): Promise<void> {
    if (this.#share === null) return;
    const { database, projection, columns, others, fence, tookIn } = this.#setup;
    this.#guarded(() => {
      this.#commit();
      this.#requireTurn(this.#checkpoint().position);
      // What is kept of pages and rows does not know of what comes.
      this.#table.forget();
      takeInShares(database, projection, columns, others, fence);
      this.#share = null;
      tookIn();
    });
  }

  async checkpoint(): Promise<Position> {
    // Whoever asks anew goes on from what it is, whoever wrote it.
    this.#table.forget();
    return this.#guarded(() => this.#checkpoint().position);
  }

  /**
   * Counts the tallies from what is there: before anything else, where a filling goes on at which a release may have been
   * that left them to the end.
   */
  recount(): void {
    const { database, projection, columns } = this.#setup;
    this.#guarded(() =>
      inTransaction(database, () => createTallies(database, projection, columns)),
    );
  }

  async load(
    keys: readonly string[],
  ): Promise<
    ReadonlyMap<string, { readonly position: Position; readonly document: JsonObject | null }>
  > {
    return this.#guarded(() => this.#table.load(keys));
  }

  async write(batch: Parameters<ViewWriter['write']>[0]): Promise<void> {
    this.#guarded(() => {
      const { database, fence } = this.#setup;
      if (!this.#filling) this.#wal.look();
      if (!database.isTransaction) database.exec('BEGIN IMMEDIATE');
      try {
        this.#requireTurn(batch.from);
        this.#uncommitted += Math.max(1, batch.documents.length);
        this.#table.write(batch.documents);
        const { to, landmark } = batch;
        execute(this.#updateCheckpoint, to, fence, landmark ? JSON.stringify(landmark) : null);
        if (!this.#filling || this.#uncommitted >= COMMIT_WHEN_FILLING) this.#commit();
      } catch (error) {
        // A batch that is merely refused takes nothing back of those before it.
        this.#table.forget();
        const refused = error instanceof ReadModelError && this.#uncommitted > 0;
        if (!refused) this.#rollback();
        throw error;
      }
    });
  }

  async page(after: string | null, limit: number): Promise<readonly KeptDocument[]> {
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
      // One that was overtaken may have made its share anew meanwhile.
      if (this.#setup.others.length > 0) this.#setup.tookIn();
    });
  }

  async close(): Promise<void> {
    const { database, file, closed } = this.#setup;
    if (!database.isOpen) return;
    await this.#wal.settled();
    // Somebody else may have closed it meanwhile.
    if (!database.isOpen) return;
    // The driver lets go of the file only when its statements are collected, and would move the WAL then,
    // on whatever thread that is. A file that was thrown away is not worth it.
    const worthIt = fileNumber(file) === this.#fileNumber;
    try {
      if (worthIt) {
        this.#commit();
        // Where others read meanwhile, as much of it as can be.
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

  /** @throws ReadModelError `FENCED` when another has written, or the checkpoint is elsewhere */
  #requireTurn(from: Position): void {
    const { position, fence, filling } = this.#checkpoint();
    if (fence > this.#setup.fence)
      throw fenced(`a writer with the fence ${String(fence)} is at it`);
    if (position !== from) throw fenced(`its checkpoint is "${position}", not "${from}"`);
    // Another writer has taken the shares in: what this one would say of a share would count for all.
    if (this.#share !== null && filling !== fillMark(this.#share)) throw fenced('it is whole');
  }

  #commit(): void {
    if (this.#setup.database.isTransaction) this.#setup.database.exec('COMMIT');
    this.#uncommitted = 0;
  }

  #rollback(): void {
    if (this.#setup.database.isTransaction) this.#setup.database.exec('ROLLBACK');
    this.#uncommitted = 0;
    // Only now: what is there is looked up.
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

  /** Refuses to go on with a file that was thrown away or made anew since; translates the driver's errors. */
  #guarded<T>(action: () => T): T {
    if (!this.#setup.database.isOpen) {
      throw new ReadModelError('UNAVAILABLE', 'the writer of this view is closed');
    }
    if (fileNumber(this.#setup.file) !== this.#fileNumber) {
      throw fenced('its file was thrown away');
    }
    try {
      return action();
    } catch (error) {
      throw this.#setup.errorOf(error);
    }
  }
}

/**
 * Ends a bulk fill: the rest of the tables, then all of it onto the disk, and only then the mark that says
 * so; the indexes are made before the mark, so whoever finds it also finds them.
 */
export function finishFilling(
  database: Database,
  projection: Projection,
  columns: readonly Column[],
): void {
  // Each index is made of a reading of the whole file, which is larger than the cache and has just been written: as a
  // map of the system's memory it costs a third less than page by page.
  database.exec(`PRAGMA mmap_size = ${MAPPED_WHEN_INDEXING}`);
  // What is sorted at once goes by the pages that are kept, which help nothing else here.
  keepPages(database, SORTED_AT_ONCE);
  database.exec('PRAGMA temp_store = FILE');
  database.exec(`PRAGMA threads = ${SORTING_THREADS}`);
  try {
    inTransaction(database, () => {
      createIndexes(database, projection, columns);
      database.exec('UPDATE checkpoint SET fence = fence');
    });
  } finally {
    database.exec('PRAGMA mmap_size = 0');
    keepPages(database, KEPT_PAGES.usual);
    database.exec('PRAGMA temp_store = MEMORY');
    database.exec('PRAGMA threads = 0');
  }
  database.exec('PRAGMA synchronous = FULL');
  // With a rollback journal a commit waits for all that has been written; a WAL is waited for by its checkpoint.
  database.exec('UPDATE checkpoint SET fence = fence');
  database.exec('PRAGMA journal_mode = WAL');
  const row: unknown = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  if (typeof row === 'object' && row !== null && 'busy' in row && row.busy !== 0) {
    throw new ReadModelError('UNAVAILABLE', "the view can't be finished while it is being read");
  }
  database.exec('UPDATE checkpoint SET filling = NULL');
  database.exec('PRAGMA synchronous = NORMAL');
}

function fenced(why: string): ReadModelError {
  return new ReadModelError('FENCED', `the view is not this writer's to write any more: ${why}`);
}
