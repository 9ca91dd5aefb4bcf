import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import { unfinishedRestore } from '../archive/durable-folder.ts';
import type { StoreSettings } from '../stores.ts';

/**
 * Rejects a start in a folder with a running or interrupted restore. The service would start an empty log, and the
 * restore would find its place taken. Call it before anything is written to the folder.
 * @throws Error that says what to do, in one line
 */
export function rejectUnfinishedRestore({ dataDirectory, eventStoreUrl }: StoreSettings): void {
  if (eventStoreUrl !== undefined || existsSync(logFile(dataDirectory))) return;
  const staging = unfinishedRestore(dataDirectory);
  if (staging === undefined) return;
  const what = `a restore into ${dataDirectory} is running or was interrupted`;
  const otherwise = `to start without it, remove ${join(dataDirectory, staging)}`;
  throw new Error(`${what}: wait for its end or run svc restore again; ${otherwise}`);
}
