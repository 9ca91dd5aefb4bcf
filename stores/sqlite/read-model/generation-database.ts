import { openDatabase, type Database } from '../database.ts';
import { LAYOUT_VERSION } from './view-table.ts';

/**
 * Opens the file of a generation for writing.
 *
 * @param options.bulk it is new, or being filled: nothing is waited for, and what is written goes into the file at once
 * @param options.migrate makes the tables; default: the file has them, and is not made where it has gone
 */
export function openGenerationDatabase(
  file: string,
  options: { readonly bulk: boolean; readonly migrate?: (database: Database) => void },
): Database {
  const { bulk, migrate } = options;
  return openDatabase({
    file,
    what: 'view',
    version: LAYOUT_VERSION,
    create: migrate !== undefined,
    migrate: migrate ?? (() => undefined),
    journal: bulk ? 'rollback' : 'wal',
    synchronous: bulk ? 'OFF' : 'NORMAL',
    busyTimeout: 2_000,
    // Filling touches all of the key's index; pages larger than the default would double what random changes write.
    cacheMiB: bulk ? 192 : 64,
  });
}
