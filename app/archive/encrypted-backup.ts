import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileBlockingFolder, makeFolder } from '../../stores/folder.ts';
import { ArchiveError } from './archive-error.ts';
import { createFolderAtomically, makeUnfinished, removeUnfinished } from './durable-folder.ts';
import { ENCRYPTED } from './encrypted-name.ts';
import { FileEncrypter } from './encryption.ts';
import { makeBackup, type ArchiveOrder } from './make-archive.ts';
import type { Manifest } from './manifest.ts';
import { withTransfer } from './open-transfer.ts';

/** The folder in which a backup is made before it is encrypted. */
const STAGING = '.backing-up';

/**
 * Makes a backup as {@link makeBackup} does, and encrypts every file. The unencrypted files are in the data directory,
 * which holds the same secrets; the target never holds them. The data directory needs space for a copy of the log.
 *
 * @param recipients public keys of age
 * @throws ArchiveError `invalid` for an invalid recipient; otherwise as {@link makeBackup}
 */
export async function makeEncryptedBackup(
  order: ArchiveOrder,
  recipients: readonly string[],
): Promise<Manifest> {
  const { place, target, progress } = order;
  const encrypter = new FileEncrypter(recipients);
  if (existsSync(target)) throw new ArchiveError('refused', `${target} already exists`);
  // The log is checked before the folder is made, so that a mistyped path does not become a data directory.
  await withTransfer(place, false, async () => {});
  const { dataDirectory } = place;
  const blocking = fileBlockingFolder(dataDirectory);
  if (blocking !== null) throw new ArchiveError('refused', `${blocking} is not a folder`);
  makeFolder(dataDirectory);
  const staging = makeUnfinished(dataDirectory, STAGING);
  const plain = join(staging, 'backup');
  try {
    const manifest = await makeBackup({ ...order, target: plain });
    progress.stage('encrypting');
    await createFolderAtomically(target, async (folder) => {
      const files = readdirSync(plain).map((name) => ({
        name,
        bytes: statSync(join(plain, name)).size,
      }));
      const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
      let done = 0;
      for (const { name, bytes } of files) {
        const encrypted = join(folder, name + ENCRYPTED);
        await encrypter.encrypt(join(plain, name), encrypted, progress.signal);
        // Each file is removed at once, so that one copy's space suffices if both folders are on one disk.
        rmSync(join(plain, name));
        done += bytes;
        progress.move(done / total);
      }
    });
    return manifest;
  } finally {
    removeUnfinished(staging);
  }
}
