import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { unfinishedRestore } from '../archive/staging.ts';
import type { StoreSettings } from '../stores.ts';

/**
 * Keeps a service from beginning a log of its own in a folder that one is being restored into, or was until the restore
 * was killed: it would answer as an empty service, and the restore would find its place taken. To be called before
 * anything is put into the folder.
 *
 * @throws Error that says what to do, in one line
 */
export function refuseHalfRestore({ dataDirectory, eventStoreUrl }: StoreSettings): void {
  if (eventStoreUrl !== undefined || existsSync(logFile(dataDirectory))) return;
  const staging = unfinishedRestore(dataDirectory);
  if (staging === undefined) return;
  const what = `a restore into ${dataDirectory} is under way, or was broken off`;
  const without = `to begin without it remove ${join(dataDirectory, staging)}`;
  throw new Error(`${what}: wait for its end, or run svc restore again; ${without}`);
}
