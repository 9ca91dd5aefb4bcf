import type { Telemetry } from '../../../observability/telemetry.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { makeFolder } from '../../folder.ts';
import { ReaderPool } from './reader-pool.ts';
import { SqliteReadModel } from './sqlite-read-model.ts';
import { registerFile, ViewFiles } from './view-files.ts';
import { unavailable } from './unavailable.ts';

/** How many reader threads serve lists. As many others serve all other queries. */
const READERS = 2;

/**
 * Opens the embedded read model: a folder with one file per generation of each projection. Any number of processes and
 * threads may open it; each thread opens its own.
 * @param options.directory created if missing
 * @param options.readOnly creates, deletes and repairs nothing. Default: false
 * @throws ReadModelError `UNAVAILABLE` when the folder is unusable, or belongs to a newer release
 */
export async function openSqliteReadModel(options: {
  readonly directory: string;
  readonly telemetry: Telemetry;
  readonly readOnly?: boolean;
}): Promise<ReadModel> {
  const { directory, telemetry, readOnly = false } = options;
  try {
    if (!readOnly) makeFolder(directory);
    const poolOf = (): ReaderPool => new ReaderPool(READERS, { immutable: readOnly });
    return new SqliteReadModel({
      files: new ViewFiles(directory, telemetry, readOnly),
      pool: poolOf(),
      lists: poolOf(),
      telemetry,
    });
  } catch (error) {
    throw unavailable('register of views', registerFile(directory), error);
  }
}
