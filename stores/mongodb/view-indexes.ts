import type { Db } from 'mongodb';
import type { Projection } from '../../projections/read-model.ts';
import type { MongoConnection } from './connection.ts';
import { isUnsupportedOption } from './driver-errors.ts';
import { collectionOf, indexesOf } from './layout.ts';

/** Runs an operation and translates the driver's errors. `limit` is in milliseconds and has a default. */
export type RunOperation = <T>(
  operation: string,
  act: (db: Db) => Promise<T>,
  limit?: number,
) => Promise<T>;

/**
 * Creates the indexes of a generation that it lacks, and its collection. All missing ones are built in one pass over
 * the documents; if an earlier process started a build, this waits for it. There is no time limit, because building
 * over a million documents takes minutes, and a retry would start over. By default a replica set waits until every
 * voting member has built an index, so one that is down would block a view. A majority is enough.
 * @throws the errors of `run`
 */
export async function createMissingIndexes(
  connection: MongoConnection,
  run: RunOperation,
  projection: Projection,
  generation: number,
): Promise<void> {
  const indexes = indexesOf(projection);
  const build = async (db: Db): Promise<void> => {
    const documents = db.collection(collectionOf(projection, generation));
    if ((await connection.deployment()) !== 'standalone') {
      try {
        await documents.createIndexes(indexes, { commitQuorum: 'majority' });
        return;
      } catch (error) {
        if (!isUnsupportedOption(error)) throw error;
      }
    }
    await documents.createIndexes(indexes);
  };
  await run('make_indexes', build, Infinity);
}
