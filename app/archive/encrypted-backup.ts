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
 * Backs up as {@link makeBackup}, and encrypts every file. Until then, they are in the data directory, which has their
 * secrets anyway: the target never has anything unencrypted. That needs space for a copy of the log there.
 *
 * @param recipients public keys of age
 * @throws ArchiveError `invalid` for a recipient that is none; else as {@link makeBackup}
 */
export async function makeEncryptedBackup(
  order: ArchiveOrder,
  recipients: readonly string[],
): Promise<Manifest> {
  const { place, target, progress } = order;
  const encrypter = new FileEncrypter(recipients);
  if (existsSync(target)) throw new ArchiveError('refused', `${target} already exists`);
  // Before the folder is made: a mistyped one must not become a data directory.
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
        // So that no more space is taken than for one copy on a shared disk.
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
