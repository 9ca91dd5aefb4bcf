import { existsSync, rmSync } from 'node:fs';
import { statIfPresent } from '../folder.ts';

/** Which file lies at a path now; undefined for none. A file made anew has another number. */
export function fileNumber(path: string): number | undefined {
  return statIfPresent(path)?.ino;
}

/**
 * Whether all of a database stands in its file, and nobody has it open: who opens it makes its WAL, or its journal, and
 * who is the last to close it takes that away.
 */
export function isAtRest(path: string): boolean {
  return !existsSync(`${path}-wal`) && !existsSync(`${path}-journal`);
}

/** Deletes a database with what lies beside it. Those who have it open go on with what they have. */
export function deleteDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true });
}
