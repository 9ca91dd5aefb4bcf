import type { Collection, Document, IndexDescription } from 'mongodb';
import type { Deployment } from './connection.ts';
import { isOptionRefused } from './failures.ts';

/**
 * Makes indexes, and resolves when they can be used. By default a replica set waits with an index until every member
 * that votes has built it, so that one which is down for a day would hold up a view for a day: a majority is asked for
 * instead. A server alone refuses to be asked for one, and a compatible one may not know the word.
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
      if (!isOptionRefused(error)) throw error;
    }
  }
  await documents.createIndexes(indexes);
}
