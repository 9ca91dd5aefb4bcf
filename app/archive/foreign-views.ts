import { existsSync } from 'node:fs';
import { silent } from '../../observability/telemetry.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { registerFile } from '../../stores/sqlite/read-model/view-files.ts';
import { projections } from '../projecting/projections.ts';
import type { StoreSettings } from '../stores.ts';
import { ArchiveError } from './archive-error.ts';

/**
 * Rejects a target with the views of another log. Their checkpoints could skip events of the new one.
 * @throws ArchiveError `refused`
 */
export async function rejectForeignViews(settings: StoreSettings): Promise<void> {
  const { dataDirectory, readModelUrl } = settings;
  if (readModelUrl === undefined && !existsSync(registerFile(dataDirectory))) return;
  const readModel = await openViews(settings);
  try {
    for (const projection of projections) {
      if ((await readModel.liveGeneration(projection)) === null) continue;
      const place = readModelUrl === undefined ? dataDirectory : 'MongoDB';
      const advice = 'use an empty folder or database; the service rebuilds views from the log';
      throw new ArchiveError('refused', `${place} has the views of another log: ${advice}`);
    }
  } finally {
    await readModel.close();
  }
}

async function openViews({ dataDirectory, readModelUrl }: StoreSettings): Promise<ReadModel> {
  if (readModelUrl !== undefined) {
    const { openMongoReadModel } = await import('../../stores/mongodb/read-model.ts');
    return openMongoReadModel({ url: readModelUrl, telemetry: silent });
  }
  const { openSqliteReadModel } = await import('../../stores/sqlite/read-model/read-model.ts');
  return openSqliteReadModel({ directory: dataDirectory, telemetry: silent });
}
