import { chmodSync, copyFileSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { credentialsFile } from '../starting/credentials-file.ts';
import { KEY_FILE } from '../starting/keys.ts';
import { syncFile } from './durable-folder.ts';
import { describeFile, type FileOfArchive } from './manifest.ts';

/**
 * What a data directory holds beside the log that can't be made again: the key of tokens, which the secrets of
 * webhooks come from, and the first admin's secret.
 */
const names: readonly string[] = [KEY_FILE, basename(credentialsFile(''))];

/** Copies the keys that there are, durably. @returns what was copied */
export async function copyKeys(from: string, to: string): Promise<FileOfArchive[]> {
  const copied: FileOfArchive[] = [];
  for (const name of names) {
    if (!existsSync(join(from, name))) continue;
    copyFileSync(join(from, name), join(to, name));
    // The copy has the mode of what it is a copy of, which may have been changed.
    chmodSync(join(to, name), 0o600);
    await syncFile(join(to, name));
    copied.push(await describeFile(to, name));
  }
  return copied;
}

/** Whether a file is one of the archive's keys as it is. */
export function isKeyOf(keys: readonly FileOfArchive[], archive: string, path: string): boolean {
  const name = basename(path);
  if (!keys.some(({ file }) => file === name)) return false;
  return readFileSync(path).equals(readFileSync(join(archive, name)));
}
