import { accessSync, constants, statfsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TemporaryDirectory {
  readonly path: string;
  /** Deletes it with its contents; does nothing if it is gone. */
  remove(): Promise<void>;
}

/** A file system in memory, which Linux has. */
const IN_MEMORY = '/dev/shm';
/** Required free space there, and required free memory, in bytes. */
const MIN_FREE_BYTES = 4 * 2 ** 30;

/**
 * Where tests write: in memory if there is enough, because the speed of a disk does not matter to
 * them. Files there survive the kill of a process too. `TMPDIR` overrides this.
 */
function whereTestsWrite(): string {
  if (process.env['TMPDIR'] !== undefined) return tmpdir();
  try {
    accessSync(IN_MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    return bavail * bsize >= MIN_FREE_BYTES && freemem() >= MIN_FREE_BYTES ? IN_MEMORY : tmpdir();
  } catch {
    // Other systems have no such file system.
    return tmpdir();
  }
}

/** Creates an empty directory among the system's temporary files; in memory if possible. */
export async function makeTemporaryDirectory(): Promise<TemporaryDirectory> {
  const path = await mkdtemp(join(whereTestsWrite(), 'svc-test-'));
  return {
    path,
    remove: () => rm(path, { recursive: true, force: true, maxRetries: 3 }),
  };
}

/**
 * Called inside a `describe`: each test gets an empty directory, removed after it. The result gives
 * its path and may be called only while a test runs.
 */
export function useTemporaryDirectory(): () => string {
  let directory: TemporaryDirectory | undefined;
  beforeEach(async () => {
    directory = await makeTemporaryDirectory();
  });
  afterEach(async () => {
    await directory?.remove();
    directory = undefined;
  });
  return () => {
    if (directory === undefined)
      throw new Error('There is a temporary directory only during a test');
    return directory.path;
  };
}
