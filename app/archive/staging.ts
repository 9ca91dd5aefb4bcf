import { readdirSync } from 'node:fs';
import { isUnfinished } from './durable-folder.ts';

/**
 * Where a restore puts a log together before it is one; within the data directory, so that nothing has to be moved. Each
 * restore has a folder of its own: one that is begun beside another must not take its log away half filled, nor give it
 * its place before it is on hold.
 */
export const STAGING = '.restoring';

/**
 * What a restore that is under way, or was broken off, has in a data directory; undefined where there is none, and where
 * the directory can't be looked into: who puts something there says why.
 */
export function unfinishedRestore(directory: string): string | undefined {
  try {
    return readdirSync(directory).find((name) => isUnfinished(name, STAGING));
  } catch {
    return undefined;
  }
}
