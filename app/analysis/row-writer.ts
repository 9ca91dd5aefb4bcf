import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { ArchiveFault } from '../archive/archive-fault.ts';
import { syncFolder } from '../archive/durable-folder.ts';
import { HashedFile } from '../archive/hashed-file.ts';
import type { Screen } from '../cli/calling/surroundings.ts';

/** Where an export's lines go. */
export interface RowWriter {
  /** Resolves when there is room for more, so that memory does not grow with a slow reader. */
  write(text: string): Promise<void>;
  finish(): Promise<void>;
  /** What was written so far is not to be taken for the whole. */
  abandon(): Promise<void>;
}

/** Writes to the standard output. */
export function toScreen(screen: Screen): RowWriter {
  return {
    async write(text) {
      screen.write(text);
      await screen.drained?.();
    },
    finish: async () => {},
    abandon: async () => {},
  };
}

/**
 * Writes a file that is there whole or not at all: under another name, made durable, and renamed.
 * @throws ArchiveFault `refused` where there is one of the name
 */
export async function toFile(path: string): Promise<RowWriter> {
  const target = resolve(path);
  if (existsSync(target)) throw new ArchiveFault('refused', `${path} is there already`);
  const folder = dirname(target);
  const name = `${basename(target)}.unfinished-${process.pid}-${randomBytes(3).toString('hex')}`;
  const file = await HashedFile.create(folder, name, false);
  return {
    write: (text) => file.write(text),
    async finish() {
      await file.finish();
      await rename(join(folder, name), target);
      await syncFolder(folder);
    },
    async abandon() {
      await file.abandon();
      rmSync(join(folder, name), { force: true });
    },
  };
}
