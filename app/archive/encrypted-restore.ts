import { existsSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../../stores/folder.ts';
import { ArchiveError } from './archive-error.ts';
import { makeUnfinished, removeUnfinished, STAGING } from './durable-folder.ts';
import { ENCRYPTED } from './encrypted-name.ts';
import { FileDecrypter } from './encryption.ts';
import { encryptedManifest, readManifest, type Manifest } from './manifest.ts';
import type { LogPlace } from './open-transfer.ts';
import {
  rejectBlockedFolder,
  rejectUsedFolder,
  restore,
  type Restored,
  type RestoreOrder,
} from './restore.ts';

/**
 * Restores an encrypted backup as {@link restore}. It is first decrypted into the data directory. Nothing of it is used
 * until all of it has been verified.
 *
 * @param identity file with secret keys of age
 * @throws ArchiveError `invalid` for a file without keys, `failed` if no key fits, `damaged` for a file that is
 *   incomplete or was altered; else as {@link restore}
 */
export async function restoreEncrypted<T>(
  order: RestoreOrder,
  identity: string,
  inspect: (place: LogPlace) => Promise<T>,
): Promise<Restored<T>> {
  const { archive, place, progress } = order;
  const { dataDirectory } = place;
  const decrypter = new FileDecrypter(identity);
  const manifestFile = encryptedManifest(archive);
  if (!existsSync(manifestFile)) {
    // Throws an error that says what the folder is.
    readManifest(archive);
    throw new ArchiveError('invalid', `${archive} is not encrypted; restore it without --identity`);
  }
  progress.stage('decrypting');
  // Checked before anything is created.
  await decrypter.check(manifestFile);
  if (place.eventStoreUrl === undefined) rejectBlockedFolder(dataDirectory);
  const isNew = !existsSync(dataDirectory);
  makeFolder(dataDirectory);
  const plain = makeUnfinished(dataDirectory, STAGING);
  try {
    await decryptInto(plain, order, decrypter);
    return await restore({ ...order, archive: plain }, inspect);
  } finally {
    removeUnfinished(plain);
    if (isNew && readdirSync(dataDirectory).length === 0) rmdirSync(dataDirectory);
  }
}

async function decryptInto(
  plain: string,
  { archive, place, progress }: RestoreOrder,
  decrypter: FileDecrypter,
): Promise<void> {
  const decrypt = async (file: string): Promise<void> => {
    const from = join(archive, file + ENCRYPTED);
    if (!existsSync(from))
      throw new ArchiveError('damaged', `${archive} is incomplete: ${from} is missing`);
    await decrypter.decrypt(from, join(plain, file), progress.signal);
  };
  await decrypt('manifest.json');
  const manifest = readManifest(plain);
  for (const { file } of manifest.keys) await decrypt(file);
  // The target is checked before the log is decrypted, because the log may be large.
  if (place.eventStoreUrl === undefined) rejectUsedFolder(place.dataDirectory, plain, manifest);
  for (const file of largeFilesOf(manifest)) await decrypt(file);
}

const largeFilesOf = (manifest: Manifest): readonly string[] =>
  manifest.kind === 'copy' ? [manifest.log.file] : [manifest.log.file, manifest.truncations.file];
