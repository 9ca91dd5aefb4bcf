import { resolve } from 'node:path';

/**
 * Lets SQLite sort in the service's folder, whose disk has room for it, instead of `/var/tmp`, which can be small or
 * missing. A set `SQLITE_TMPDIR` stays. The files are unnamed and disappear with the process.
 *
 * Call it on the main thread, before the first database is opened: SQLite reads the variable once.
 * @see https://www.sqlite.org/tempfiles.html#temporary_file_storage_locations
 */
export function useSqliteTempFolder(folder: string): void {
  process.env['SQLITE_TMPDIR'] ??= resolve(folder);
}
