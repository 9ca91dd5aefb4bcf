import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { credentialsFile } from '../starting/credentials-file.ts';
import { KEY_FILE } from '../starting/keys.ts';
import { isSecretKeyFile } from '../starting/secret-keyring.ts';
import { syncFile } from './durable-folder.ts';
import { describeFile, type FileOfArchive } from './manifest.ts';

/**
 * The irreplaceable files beside the log: the signing key, from which webhook secrets derive, the admin's secret, and the
 * keys that secrets are encrypted with.
 */
const names: readonly string[] = [KEY_FILE, basename(credentialsFile(''))];

/** Copies the existing key files and syncs them. */
export async function copyKeys(from: string, to: string): Promise<FileOfArchive[]> {
  const copied: FileOfArchive[] = [];
  const found = existsSync(from) ? readdirSync(from).sort() : [];
  for (const name of found.filter((each) => names.includes(each) || isSecretKeyFile(each))) {
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
