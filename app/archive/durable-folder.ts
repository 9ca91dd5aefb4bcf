import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { makeFolder } from '../../stores/folder.ts';
import { ArchiveError } from './archive-error.ts';

/** Between a folder's name and the suffix of its unfinished form. */
const UNFINISHED = '.unfinished-';

/** The unfinished folders of this process. */
const ours = new Set<string>();

/**
 * Creates a folder that exists completely or not at all: it is filled under another name, synced and renamed. Removes
 * unfinished folders that killed processes left.
 *
 * @param fill writes synced files into the folder it is given
 * @throws ArchiveError `refused` if the path exists; the errors of `fill`
 */
export async function createFolderAtomically<T>(
  path: string,
  fill: (unfinished: string) => Promise<T>,
): Promise<T> {
  const target = resolve(path);
  if (existsSync(target)) throw new ArchiveError('refused', `${path} already exists`);
  const parent = dirname(target);
  makeFolder(parent);
  const unfinished = makeUnfinished(parent, basename(target));
  try {
    const result = await fill(unfinished);
    await syncFolder(unfinished);
    await rename(unfinished, target);
    ours.delete(unfinished);
    await syncFolder(parent);
    return result;
  } catch (error) {
    removeUnfinished(unfinished);
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') {
      throw new ArchiveError('refused', `another process created ${path} meanwhile`, error);
    }
    throw error;
  }
}

/**
 * Creates an unfinished folder for this call alone, and removes unfinished folders that killed processes left. Returns
 * its path, for {@link removeUnfinished}.
 */
export function makeUnfinished(parent: string, name: string): string {
  removeLeftovers(parent, name);
  const suffix = `${process.pid}-${randomBytes(3).toString('hex')}`;
  const path = join(parent, name + UNFINISHED + suffix);
  mkdirSync(path, { mode: 0o700 });
  ours.add(path);
  return path;
}

/** Removes an unfinished folder. */
export function removeUnfinished(path: string): void {
  rmSync(path, { recursive: true, force: true });
  ours.delete(path);
}

/** Whether an entry is the unfinished form of a folder. */
export const isUnfinished = (entry: string, name: string): boolean =>
  entry.startsWith(name + UNFINISHED);

/**
 * The folder in which a restore builds a log, in the data directory, so that nothing has to be moved. Each restore has its
 * own, so that a concurrent one can neither take a half-filled log nor start it before it is on hold.
 */
export const STAGING = '.restoring';

/** The folder of a running or interrupted restore; undefined if there is none or the directory cannot be read. */
export function unfinishedRestore(directory: string): string | undefined {
  try {
    return readdirSync(directory).find((name) => isUnfinished(name, STAGING));
  } catch {
    return undefined;
  }
}

/** Syncs the names in a folder. */
export const syncFolder = (path: string): Promise<void> => sync(path, 'r');

/** Syncs the content of a file. */
export const syncFile = (path: string): Promise<void> => sync(path, 'r+');

async function sync(path: string, flags: string): Promise<void> {
  const handle = await open(path, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function removeLeftovers(parent: string, name: string): void {
  for (const each of readdirSync(parent)) {
    if (!isUnfinished(each, name)) continue;
    const path = join(parent, each);
    const owner = Number(each.slice(name.length + UNFINISHED.length).split('-', 1)[0]);
    if (owner === process.pid ? ours.has(path) : owner > 0 && isAlive(owner)) continue;
    rmSync(path, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Another user's process.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
