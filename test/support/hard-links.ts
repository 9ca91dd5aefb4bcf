import files from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

/** Runs a function while hard links are impossible, as on FAT and some network shares. */
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
