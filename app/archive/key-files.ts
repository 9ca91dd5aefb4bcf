import { chmodSync, copyFileSync, existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { credentialsFile } from '../starting/credentials-file.ts';
import { KEY_FILE } from '../starting/keys.ts';
import { syncFile } from './durable-folder.ts';
import { describeFile, type FileOfArchive } from './manifest.ts';

/** The irreplaceable files beside the log: the signing key, from which webhook secrets derive, and the admin's secret. */
const names: readonly string[] = [KEY_FILE, basename(credentialsFile(''))];

/** Copies the existing key files and syncs them. */
export async function copyKeys(from: string, to: string): Promise<FileOfArchive[]> {
  const copied: FileOfArchive[] = [];
  for (const name of names) {
    if (!existsSync(join(from, name))) continue;
    copyFileSync(join(from, name), join(to, name));
    chmodSync(join(to, name), 0o600);
    await syncFile(join(to, name));
    copied.push(await describeFile(to, name));
  }
  return copied;
}

/** Whether a file is an unchanged key file of the archive. */
export function isKeyOf(keys: readonly FileOfArchive[], archive: string, path: string): boolean {
  const name = basename(path);
  if (!keys.some(({ file }) => file === name)) return false;
  return readFileSync(path).equals(readFileSync(join(archive, name)));
}
