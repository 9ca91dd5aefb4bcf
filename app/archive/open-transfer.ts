import { existsSync } from 'node:fs';
import { silent } from '../../observability/telemetry.ts';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { openSqliteTransfer } from '../../stores/sqlite/event-log/transfer.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import type { StoreSettings } from '../stores.ts';
import { ArchiveFault } from './archive-fault.ts';

/** Where a log is. */
export interface LogPlace extends Pick<StoreSettings, 'dataDirectory' | 'eventStoreUrl'> {
  /** Whether no file may be made beside an embedded one that is only read. Default: false. */
  readonly immutable?: boolean;
}

/**
 * Works on a log that is to be moved, and closes it.
 * @param create whether it is the aim, and may have to be made
 * @throws ArchiveFault `refused` where there is no log to read: a mistyped folder must not become an empty archive
 */
export async function onTransfer<T>(
  place: LogPlace,
  create: boolean,
  work: (log: LogTransfer) => Promise<T>,
): Promise<T> {
  const log = await openTransfer(place, create);
  try {
    return await work(log);
  } finally {
    await log.close();
  }
}

async function openTransfer(
  { dataDirectory: directory, eventStoreUrl: url, immutable = false }: LogPlace,
  create: boolean,
): Promise<LogTransfer> {
  if (url !== undefined) {
    // Loaded when it is asked for: the driver would be most of what a command loads.
    const { openEventStoreDbTransfer } = await import('../../stores/eventstoredb/transfer.ts');
    return openEventStoreDbTransfer({ url, telemetry: silent });
  }
  if (!create && !existsSync(logFile(directory))) {
    const advice = 'set SVC_DATA_DIR or --data-dir';
    throw new ArchiveFault('absent', `there is no store in ${directory}: ${advice}`);
  }
  return openSqliteTransfer({ directory, create, immutable, telemetry: silent });
}
