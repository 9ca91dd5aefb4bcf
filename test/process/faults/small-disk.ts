import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { leaveOut } from '../../support/left-out.ts';

/** A folder on a disk that a test can fill and empty. */
export interface SmallDisk {
  readonly path: string;
  /** Prevents any growth from now on. */
  fill(): void;
  /** Makes space again. */
  empty(): void;
  /** Unmounts the disk. */
  remove(): void;
}

/** Size of the disk in bytes. */
const SIZE = 24 * 1024 * 1024;

/** Mounts a small disk in memory on an empty folder. Skips the test if that is not allowed. */
export function mountSmallDisk(context: Mocha.Context, path: string): SmallDisk {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', path]);
  if (mounted.status !== 0) leaveOut(context, 'a full disk: mounting one takes root');
  const filler = join(path, 'filler');
  return {
    path,
    fill() {
      const file = openSync(filler, 'a');
      try {
        for (const bytes of [1024 * 1024, 64 * 1024, 4096, 1]) writeUntilFull(file, bytes);
      } finally {
        closeSync(file);
      }
    },
    empty: () => rmSync(filler, { force: true }),
    remove() {
      // Lazily: SQLite's driver releases closed files only at the next garbage collection.
      const { status, stderr } = spawnSync('umount', ['--lazy', path], { encoding: 'utf8' });
      if (status !== 0) throw new Error(`could not unmount the small disk: ${stderr}`);
    },
  };
}

function writeUntilFull(file: number, bytes: number): void {
  const zeros = Buffer.alloc(bytes);
  try {
    // A truncated write also means that the disk is full.
    while (writeSync(file, zeros) === bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
