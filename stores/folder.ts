import { mkdirSync, statSync, type Stats } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes a folder, and those above it, where they do not exist yet. Not by Node's own `recursive`, which never ends where
 * the system says that there is no such file although the folder above exists, as under `/proc`.
 *
 * Only their owner has access, because the service's files contain what callers told only the service.
 *
 * @throws the file system's error, which names the folder that cannot be made: ENOTDIR where a part of the path is a
 *   file, EEXIST where the path itself is one
 */
export function makeFolder(path: string): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path && statIfPresent(above) === undefined) makeFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have been faster.
    if (!isFolder(path)) throw error;
  }
}

/**
 * What is at a path; undefined where nothing is. A path below a file counts as nothing: Node 20 throws there (ENOTDIR)
 * even with `throwIfNoEntry: false`, and later versions return undefined.
 */
export function statIfPresent(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** What is no folder although a path leads through it, or to it; null for a path that is free or is a folder. */
export function fileInPlaceOf(path: string): string | null {
  const stat = statIfPresent(path);
  if (stat !== undefined) return stat.isDirectory() ? null : path;
  const above = dirname(resolve(path));
  return above === resolve(path) ? null : fileInPlaceOf(above);
}

function isFolder(path: string): boolean {
  return statIfPresent(path)?.isDirectory() ?? false;
}
