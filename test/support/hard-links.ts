import files from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** Does something while no file can have a second name, as on FAT and on some shares of a network. */
export async function withoutHardLinks(work: () => Promise<void> | void): Promise<void> {
  const { linkSync } = files;
  files.linkSync = () => {
    throw Object.assign(new Error('no links here'), { code: 'EPERM' });
  };
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    files.linkSync = linkSync;
    syncBuiltinESMExports();
  }
}
