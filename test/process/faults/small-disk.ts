import { spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { leaveOut } from '../../support/left-out.ts';

/** A folder whose disk a test can fill up and make room on. */
export interface SmallDisk {
  readonly path: string;
  /** From now on nothing can grow. */
  fill(): void;
  /** There is room again. */
  empty(): void;
  /** Gives the disk back. */
  remove(): void;
}

/** Bytes of the disk. */
const SIZE = 24 * 1024 * 1024;

/** Mounts a small disk in memory on an empty folder. Leaves the test out where that is not allowed. */
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
      // Lazily: the driver of SQLite lets go of closed files only with the next garbage collection.
      const { status, stderr } = spawnSync('umount', ['--lazy', path], { encoding: 'utf8' });
      if (status !== 0) throw new Error(`the small disk stays: ${stderr}`);
    },
  };
}

function writeUntilFull(file: number, bytes: number): void {
  const zeros = Buffer.alloc(bytes);
  try {
    // A last write may be cut short, which says the same as a refused one.
    while (writeSync(file, zeros) === bytes);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}
