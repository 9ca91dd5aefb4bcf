import { existsSync, rmSync } from 'node:fs';
import { statIfPresent } from '../folder.ts';

/** The inode of a path; undefined for none. A recreated file has another number. */
export function fileNumber(path: string): number | undefined {
  return statIfPresent(path)?.ino;
}

/** Whether a database is complete in its file and not open: its WAL or journal exists only while it is open. */
export function isDatabaseClosed(path: string): boolean {
  return !existsSync(`${path}-wal`) && !existsSync(`${path}-journal`);
}

/** Deletes a database and its companions. Open connections keep the deleted file. */
export function deleteDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true });
}
