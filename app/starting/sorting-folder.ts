import { resolve } from 'node:path';

/**
 * Has SQLite put what it can't sort in memory into the service's folder, whose disk has room for what is sorted, and not
 * into `/var/tmp`, which may be small, or not there. Unless `SQLITE_TMPDIR` names another folder already. The files have
 * no name by the time that anything stands in them: they are gone with the process, however that ends.
 *
 * On the main thread, where the environment is the process's own, and before the first file is opened: SQLite looks there
 * once.
 *
 * @see https://www.sqlite.org/tempfiles.html#temporary_file_storage_locations
 */
export function sortIn(folder: string): void {
  process.env['SQLITE_TMPDIR'] ??= resolve(folder);
}
