import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface TemporaryDirectory {
  readonly path: string;
  /** Deletes it with all that is in it; does nothing when it is gone. */
  remove(): Promise<void>;
}

/** Makes an empty directory of its own among the system's temporary files. */
export async function makeTemporaryDirectory(): Promise<TemporaryDirectory> {
  const path = await mkdtemp(join(tmpdir(), 'svc-test-'));
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
