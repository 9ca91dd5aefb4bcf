import type { Collection, Document, IndexDescription } from 'mongodb';
import type { Deployment } from './connection.ts';
import { isUnsupportedOption } from './driver-errors.ts';

/**
 * Creates indexes and resolves when they are usable. By default a replica set waits until every voting member has built
 * an index, so one member that is down would block a view. This asks for a majority instead, where the server allows it.
 *
 * @throws the driver's errors
 */
export async function buildIndexes<T extends Document>(
  documents: Collection<T>,
  indexes: IndexDescription[],
  deployment: Deployment,
): Promise<void> {
  if (deployment !== 'standalone') {
    try {
      await documents.createIndexes(indexes, { commitQuorum: 'majority' });
      return;
    } catch (error) {
      if (!isUnsupportedOption(error)) throw error;
    }
  }
  await documents.createIndexes(indexes);
}
