import type { Telemetry } from '../../../observability/telemetry.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { makeFolder } from '../../folder.ts';
import { ReaderPool } from './reader-pool.ts';
import { SqliteReadModel } from './sqlite-read-model.ts';
import { registerFile, ViewFiles } from './view-files.ts';
import { unavailable } from './faults.ts';

/** Reading threads unless said otherwise: half of them for lists, half for everything else. */
const DEFAULT_READERS = 4;

/**
 * Opens the embedded read model: a folder with a file for each generation of each projection. Any number of
 * processes and threads may open the same folder; each thread opens its own.
 *
 * @param options.directory where the files lie; made when it is not there
 * @param options.readOnly to look at what is there: nothing is made or thrown away, what is damaged neither. Default: false
 * @param options.readers threads for queries at most, at least 2; default 4. They start when first needed.
 * @throws ReadModelError `UNAVAILABLE` when the folder can't be used, or is a newer release's
 */
export async function openSqliteReadModel(options: {
  readonly directory: string;
  readonly telemetry: Telemetry;
  readonly readOnly?: boolean;
  readonly readers?: number;
}): Promise<ReadModel> {
  const { directory, telemetry, readOnly = false } = options;
  try {
    if (!readOnly) makeFolder(directory);
    const half = Math.max(1, Math.floor((options.readers ?? DEFAULT_READERS) / 2));
    const poolOf = (): ReaderPool => new ReaderPool(half, { immutable: readOnly });
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
