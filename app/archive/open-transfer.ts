import { existsSync } from 'node:fs';
import { silent } from '../../observability/telemetry.ts';
import type { LogTransfer } from '../../domain/log-transfer.ts';
import { openSqliteTransfer } from '../../stores/sqlite/event-log/transfer.ts';
import { logFile } from '../../stores/sqlite/event-log/schema.ts';
import type { StoreSettings } from '../stores.ts';
import { ArchiveError } from './archive-error.ts';

/** The place of a log. */
export interface LogPlace extends Pick<StoreSettings, 'dataDirectory' | 'eventStoreUrl'> {
  /** Whether reading an embedded log must create no files. Default: false. */
  readonly immutable?: boolean;
}

/**
 * Opens a log for a transfer and closes it.
 * @param create whether it is the target and can be created
 * @throws ArchiveError `absent` if there is no log to read, so that a mistyped folder does not become an empty archive
 */
export async function withTransfer<T>(
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
    // Imported here because the driver is large.
    const { openEventStoreDbTransfer } = await import('../../stores/eventstoredb/transfer.ts');
    return openEventStoreDbTransfer({ url, telemetry: silent });
  }
  if (!create && !existsSync(logFile(directory))) {
    const message = `there is no store in ${directory}; set SVC_DATA_DIR or --data-dir`;
    throw new ArchiveError('absent', message);
  }
  return openSqliteTransfer({ directory, create, immutable, telemetry: silent });
}
