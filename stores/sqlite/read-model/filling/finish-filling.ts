import { ReadModelError, type Projection } from '../../../../projections/read-model.ts';
import { inTransaction, setPageCache, type Database } from '../../database.ts';
import { createIndexes, PAGE_CACHE_MIB, type Column } from '../view-table.ts';

/** Bytes of a file mapped while its indexes are built: all of it, up to SQLite's limit of 2 GiB. */
const MAPPED_BYTES = 2 ** 40;

/** MiB of an index sorted in memory, and the extra threads for it. More would take over a GiB for ten million documents. */
const SORT_MIB = 16;
const SORTING_THREADS = 1;

/**
 * Ends a bulk fill: builds the indexes, syncs everything, and only then removes the mark. So a file without the mark has
 * its indexes.
 */
export function finishFilling(
  database: Database,
  projection: Projection,
  columns: readonly Column[],
): void {
  // Each index build reads the whole file, which exceeds the cache. Reading the mapped file costs a third less.
  database.exec(`PRAGMA mmap_size = ${MAPPED_BYTES}`);
  // The sort buffer follows the page cache, which helps nothing else here.
  setPageCache(database, SORT_MIB);
  database.exec('PRAGMA temp_store = FILE');
  database.exec(`PRAGMA threads = ${SORTING_THREADS}`);
  try {
    inTransaction(database, () => {
      createIndexes(database, projection, columns);
      database.exec('UPDATE checkpoint SET fence = fence');
    });
  } finally {
    database.exec('PRAGMA mmap_size = 0');
    setPageCache(database, PAGE_CACHE_MIB.usual);
    database.exec('PRAGMA temp_store = MEMORY');
    database.exec('PRAGMA threads = 0');
  }
  database.exec('PRAGMA synchronous = FULL');
  // With a rollback journal the commit syncs everything; with a WAL its checkpoint does.
  database.exec('UPDATE checkpoint SET fence = fence');
  database.exec('PRAGMA journal_mode = WAL');
  if (database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] !== 0) {
    throw new ReadModelError('UNAVAILABLE', 'the view cannot be finished while it is being read');
  }
  database.exec('UPDATE checkpoint SET filling = NULL');
  database.exec('PRAGMA synchronous = NORMAL');
}
