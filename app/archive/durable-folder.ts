import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { open, rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
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
  mkdirSync(parent, { recursive: true });
  removeLeftovers(parent, basename(target));
  const own = `${basename(target)}${UNFINISHED}${process.pid}-${randomBytes(3).toString('hex')}`;
  const unfinished = join(parent, own);
  try {
    mkdirSync(unfinished, { mode: 0o700 });
    const made = await fill(unfinished);
    await syncFolder(unfinished);
    await rename(unfinished, target);
    await syncFolder(parent);
    return made;
  } catch (error) {
    rmSync(unfinished, { recursive: true, force: true });
    if ((error as NodeJS.ErrnoException).code === 'ENOTEMPTY') {
      throw new ArchiveFault('refused', `${path} was made by somebody else meanwhile`, error);
    }
    throw error;
  }
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
  const mark = `${name}${UNFINISHED}`;
  for (const each of readdirSync(parent)) {
    if (!each.startsWith(mark)) continue;
    const owner = Number(each.slice(mark.length).split('-', 1)[0]);
    if (owner > 0 && isAlive(owner)) continue;
    rmSync(join(parent, each), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  if (pid === process.pid) return false;
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Another user's process is there all the same.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
