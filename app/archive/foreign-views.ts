import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { silent } from '../../observability/telemetry.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { projections } from '../projecting/projections.ts';
import type { StoreSettings } from '../stores.ts';
import { ArchiveFault } from './archive-fault.ts';

/** What embedded views have in the data directory, where there are any. */
const REGISTER = 'views.db';

/**
 * Keeps a log from being put beside the views of another: their checkpoints would lie anywhere in it, and what comes
 * before them would never be folded.
 * @throws ArchiveFault `refused`
 */
export async function rejectForeignViews(settings: StoreSettings): Promise<void> {
  const { dataDirectory, readModelUrl } = settings;
  if (readModelUrl === undefined && !existsSync(join(dataDirectory, REGISTER))) return;
  const readModel = await openViews(settings);
  try {
    for (const projection of projections) {
      if ((await readModel.liveGeneration(projection)) === null) continue;
      const where =
        readModelUrl === undefined ? `the views in ${dataDirectory}` : 'the views in MongoDB';
      const how = 'take an empty folder or database: views are made again from the log';
      throw new ArchiveFault('refused', `${where} are those of another log: ${how}`);
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
