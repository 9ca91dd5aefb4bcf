import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { makeFolder } from '../../stores/folder.ts';
import { ArchiveFault } from './archive-fault.ts';

/** Between the name of a folder and what makes its unfinished form another. */
const UNFINISHED = '.unfinished-';

/**
 * Makes a folder that is there whole or not at all: it is filled under another name, made durable, and renamed. What a
 * process that was killed has left of the same folder is removed.
 *
 * @param fill writes into the folder that it is given; its files are synced by whoever wrote them
 * @throws ArchiveFault `refused` where there is something of the name already; all that `fill` throws
 */
export async function makeWholeFolder<T>(
  path: string,
  fill: (unfinished: string) => Promise<T>,
): Promise<T> {
  const target = resolve(path);
  if (existsSync(target)) throw new ArchiveFault('refused', `${path} is there already`);
  const parent = dirname(target);
  makeFolder(parent);
  const unfinished = makeUnfinished(parent, basename(target));
  try {
    const made = await fill(unfinished);
    await syncFolder(unfinished);
    await rename(unfinished, target);
    ours.delete(unfinished);
    await syncFolder(parent);
    return made;
  } catch (error) {
    removeUnfinished(unfinished);
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') {
      throw new ArchiveFault('refused', `${path} was made by somebody else meanwhile`, error);
    }
    throw error;
  }
}

/** Those of this process that are being filled. */
const ours = new Set<string>();

/**
 * Makes a folder for what is not finished, of this call alone, and removes what calls that were killed have left of the
 * same name. Two at once thus never write into one folder.
 * @returns its path, for {@link removeUnfinished}
 */
export function makeUnfinished(parent: string, name: string): string {
  removeLeftovers(parent, name);
  const own = `${name}${UNFINISHED}${process.pid}-${randomBytes(3).toString('hex')}`;
  const path = join(parent, own);
  mkdirSync(path, { mode: 0o700 });
  ours.add(path);
  return path;
}

/** Removes such a folder, or what is left of it. */
export function removeUnfinished(path: string): void {
  rmSync(path, { recursive: true, force: true });
  ours.delete(path);
}

/** Whether this is what such a folder of the name is called. */
export function isUnfinished(entry: string, name: string): boolean {
  return entry.startsWith(`${name}${UNFINISHED}`);
}

/** Makes the names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Makes what a file holds durable. */
export async function syncFile(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
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
    // Another user's process is there all the same.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
