import { expect } from 'chai';
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
import { realServerAt } from '../support/left-out.ts';

const realServer = realServerAt('SVC_TEST_MONGODB_URL');

/** Coordination stores over one database, each with its own client, as in separate processes. */
async function harnessOver(
  options: Omit<MongoCoordinationOptions, 'telemetry'>,
  time: Pick<CoordinationHarness, 'advance' | 'close'>,
): Promise<CoordinationHarness> {
  const opened: Coordination[] = [];
  const another = async (): Promise<Coordination> => {
    // Equal options would share a client, so these differ by a millisecond.
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

  // The contract moves the clock, which is impossible on a real server. Therefore the results that
  // depend on the server's own clock are tested separately, on the stand-in and on a real server.
  async function byTheServersClock(url: string, database: string): Promise<void> {
    const options = { url, database, telemetry: silent };
    const one = await openMongoCoordination(options);
    const two = await openMongoCoordination({ ...options, serverSelectionTimeoutMs: 2001 });
    try {
      const name = randomUUID();
      const lease = await one.acquire(name, 'one', 60_000);
      expect(lease).to.deep.equal({ fence: 1, remaining: 60_000 });
      expect(await two.acquire(name, 'two', 60_000)).to.equal(null);
      expect((await one.acquire(name, 'one', 60_000))?.fence).to.equal(1);
      await one.release(name, 'one');
      expect((await two.acquire(name, 'two', 60_000))?.fence).to.equal(2);

      await one.heartbeat(name, { slots: 2 }, 60_000);
      const member = (await two.alive()).find(({ id }) => id === name);
      expect(member?.about).to.deep.equal({ slots: 2 });
      expect(member?.remaining).to.be.within(1, 60_000);

      const day = 24 * 60 * 60_000;
      await one.count(name, 1, day);
      const { sum, remaining } = await two.count(name, 2, day);
      // It is 2 only if a new day began between the two calls.
      expect(sum).to.be.oneOf([3, 2]);
      expect(remaining).to.be.within(1, day);
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  }

  it("keeps leases, members and counters by the server's clock, against the stand-in", async () => {
    const server = await MongoServer.start({ replicaSet: 'rs0' });
    await byTheServersClock(server.url(), 'contract');
    await server.stop();
  });

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
    it("keeps leases, members and counters by the server's clock, against the server named by the environment", () =>
      byTheServersClock(realServer, database));
    after(async () => {
      const client = new MongoClient(realServer);
      await client.db(database).dropDatabase();
      await client.close();
    });
  }
});
