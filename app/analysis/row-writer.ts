import { randomBytes } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { ArchiveError } from '../archive/archive-error.ts';
import { syncFolder } from '../archive/durable-folder.ts';
import { HashedFile } from '../archive/hashed-file.ts';
import type { OutputStream } from '../cli/calling/cli-environment.ts';

export interface RowWriter {
  /** Resolves when there is room for more, so that a slow reader cannot fill the memory. */
  write(text: string): Promise<void>;
  finish(): Promise<void>;
  /** Marks the output as incomplete. */
  abandon(): Promise<void>;
}

/** Writes to the standard output. */
export function toScreen(screen: OutputStream): RowWriter {
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
 * Writes a file atomically: under another name, synced, then renamed.
 * @throws ArchiveError `refused` if the file exists
 */
export async function toFile(path: string): Promise<RowWriter> {
  const target = resolve(path);
  if (existsSync(target)) throw new ArchiveError('refused', `${path} is there already`);
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
