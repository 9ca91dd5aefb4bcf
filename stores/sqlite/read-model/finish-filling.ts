import { ReadModelError } from '../../../projections/read-model.ts';
import type { Database } from '../database.ts';
import type { RowShape } from './view-rows.ts';
import { createIndexes, type Column } from './view-table.ts';

/** Bytes of a file that are mapped while its indexes are made: all of it. SQLite itself takes up to 2 GiB of that. */
const MAPPED_WHEN_INDEXING = 2 ** 40;

/** MiB of page cache meanwhile: what is written goes straight from one end to the other, and is not looked at again. */
const CACHE_WHEN_INDEXING = 64;

/**
 * Ends a bulk fill: the rest of the tables, then all of it onto the disk, and only then the mark that says
 * so; the indexes are made before the mark, so whoever finds it also finds them.
 */
export function finishFilling(
  database: Database,
  shape: RowShape,
  columns: readonly Column[],
): void {
  // Each index is made of a reading of the whole file, which is larger than the cache and has just been written: as a
  // map of the system's memory it costs a third less than page by page.
  database.exec(`PRAGMA mmap_size = ${MAPPED_WHEN_INDEXING}`);
  database.exec(`PRAGMA cache_size = ${-1024 * CACHE_WHEN_INDEXING}`);
  database.exec('BEGIN IMMEDIATE');
  try {
    createIndexes(database, shape, columns);
    database.exec('UPDATE checkpoint SET fence = fence');
    database.exec('COMMIT');
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  } finally {
    database.exec('PRAGMA mmap_size = 0');
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
