import { randomUUID } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { silent } from '../../observability/telemetry.ts';
import type { Coordination } from '../../scheduler/coordination.ts';
import {
  type MongoCoordinationOptions,
  openMongoCoordination,
} from '../../stores/mongodb/coordination.ts';
import { leavesNothingOpen } from '../support/leaks.ts';
import { MongoServer } from '../support/mongodb-server/server.ts';
import { describeCoordinationContract, type CoordinationHarness } from './coordination.ts';

const realServer = process.env['SVC_TEST_MONGODB_URL'];

/** Coordinations over one database; each with a client of its own, as another process has. */
async function harnessOver(
  options: Omit<MongoCoordinationOptions, 'telemetry'>,
  time: Pick<CoordinationHarness, 'advance' | 'close'>,
): Promise<CoordinationHarness> {
  const opened: Coordination[] = [];
  const another = async (): Promise<Coordination> => {
    // Clients are shared by those who give the same options; these differ by a millisecond.
    const serverSelectionTimeoutMs = 2000 + opened.length;
    const coordination = await openMongoCoordination({
      ...options,
      telemetry: silent,
      serverSelectionTimeoutMs,
    });
    opened.push(coordination);
    return coordination;
  };
  const coordination = await another();
  return {
    coordination,
    another,
    advance: time.advance,
    async close() {
      await Promise.all(opened.map((one) => one.close()));
      await time.close();
    },
  };
}

describe('the contract of coordination, in MongoDB', () => {
  leavesNothingOpen();

  for (const [sentence, replicaSet] of [
    ['over a standalone server', undefined],
    ['over a replica set', 'rs0'],
  ] as const) {
    describeCoordinationContract(sentence, async () => {
      let now = Date.parse('2026-03-01T12:00:00Z');
      const server = await MongoServer.start({
        now: () => now,
        ...(replicaSet !== undefined && { replicaSet }),
      });
      return harnessOver(
        { url: server.url('contract') },
        {
          advance(milliseconds) {
            now += milliseconds;
            return Promise.resolve();
          },
          close: () => server.stop(),
        },
      );
    });
  }

  if (realServer !== undefined) {
    const database = `svc_test_${randomUUID().replaceAll('-', '')}`;
    describeCoordinationContract('over the server that the environment names', () => {
      let now = Date.now();
      return harnessOver(
        { url: realServer, database, clockForTests: { now: () => now } },
        {
          advance(milliseconds) {
            now += milliseconds;
            return Promise.resolve();
          },
          close: () => Promise.resolve(),
        },
      );
    });
    after(async () => {
      const client = new MongoClient(realServer);
      await client.db(database).dropDatabase();
      await client.close();
    });
  }
});
