import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Makes a folder, and those above it, where they are not there yet. Not by Node's own `recursive`, which never ends
 * where the system says that there is no such file although the folder above is there, as under `/proc`.
 *
 * @param mode of those that are made. Default: their owner's alone, as what was said to nobody but the service stands in
 *   its files
 * @throws the file system's error, which names the folder that can't be made
 */
export function makeFolder(path: string, mode = 0o700): void {
  if (isFolder(path)) return;
  const above = dirname(path);
  if (above !== path) makeFolder(above, mode);
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // Another process may have been faster.
    if (!isFolder(path)) throw error;
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
