import { mkdirSync, statSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Creates a folder and its missing parents, accessible to its owner only. Node's `recursive` is not used: it never ends
 * where mkdir reports ENOENT below an existing folder, as under `/proc`.
 * @throws the file system's error: ENOTDIR where a part of the path is a file, EEXIST where the path itself is one
 */
export function makeFolder(path: string): void {
  if (isDirectory(path)) return;
  const above = dirname(path);
  if (above !== path && statIfPresent(above) === undefined) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!isDirectory(path)) throw error;
  }
}

/**
 * The file or folder at a path; undefined for nothing. Node 20 throws ENOTDIR below a file, even with `throwIfNoEntry:
 * false`.
 */
export function statIfPresent(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** The file in the place of a needed folder, at a path or above it; null if there is none. */
export function fileBlockingFolder(path: string): string | null {
  const stat = statIfPresent(path);
  if (stat !== undefined) return stat.isDirectory() ? null : path;
  const above = dirname(resolve(path));
  return above === resolve(path) ? null : fileBlockingFolder(above);
}

function isDirectory(path: string): boolean {
  return statIfPresent(path)?.isDirectory() ?? false;
}
