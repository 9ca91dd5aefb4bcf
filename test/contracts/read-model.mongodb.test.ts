import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { silent } from '../../observability/telemetry.ts';
import type { ReadModel } from '../../projections/read-model.ts';
import { openMongoReadModel } from '../../stores/mongodb/read-model.ts';
import { leavesNothingOpen } from '../support/leaks.ts';
import { MongoServer } from '../support/mongodb-server/server.ts';
import { describeReadModelContract, type ReadModelHarness } from './read-model.ts';
import { realServerAt } from '../support/left-out.ts';

const realServer = realServerAt('SVC_TEST_MONGODB_URL');

/** Read models over one database, each with its own client, as in separate processes. */
async function harnessOver(url: string, database: string, more: Partial<ReadModelHarness> = {}) {
  const opened: ReadModel[] = [];
  const another = async (): Promise<ReadModel> => {
    // Equal options share a client; these differ by a millisecond.
    const serverSelectionTimeoutMs = 2000 + opened.length;
    const readModel = await openMongoReadModel({
      url,
      database,
      telemetry: silent,
      serverSelectionTimeoutMs,
    });
    opened.push(readModel);
    return readModel;
  };
  const readModel = await another();
  return {
    ...more,
    readModel,
    another,
    async close() {
      await Promise.all(opened.map((one) => one.close()));
      await more.close?.();
    },
  };
}

describe('the contract of the read model, in MongoDB', () => {
  leavesNothingOpen();

  describeReadModelContract(
    'over a standalone server',
    async () => {
      const server = await MongoServer.start();
      return harnessOver(server.url(), 'contract', {
        interruptBeforeCheckpoint: () =>
          void server.fault({
            command: 'update',
            collection: '_checkpoints',
            effect: { kind: 'drop', executed: false },
          }),
        close: () => server.stop(),
      });
    },
    { writesCheckpointLast: true },
  );

  describeReadModelContract('over a replica set, with transactions', async () => {
    const server = await MongoServer.start({ replicaSet: 'rs0' });
    return harnessOver(server.url(), 'contract', { close: () => server.stop() });
  });

  describeReadModelContract('over a sharded cluster', async () => {
    const server = await MongoServer.start({ sharded: true });
    return harnessOver(server.url(), 'contract', { close: () => server.stop() });
  });

  if (realServer !== undefined) {
    const database = `svc_test_${randomUUID().replaceAll('-', '')}`;
    describeReadModelContract('over the server that the environment names', () =>
      harnessOver(realServer, database),
    );
    after(async () => {
      const client = new MongoClient(realServer);
      await client.db(database).dropDatabase();
      await client.close();
    });
  }
});
