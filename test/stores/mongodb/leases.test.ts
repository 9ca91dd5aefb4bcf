import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import { CoordinationError, type Coordination } from '../../../scheduler/coordination.ts';
import { openMongoCoordination } from '../../../stores/mongodb/coordination.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';

const DUPLICATE = {
  kind: 'error',
  code: 11000,
  codeName: 'DuplicateKey',
  message: 'E11000 duplicate key error',
} as const;

describe('coordination in MongoDB', () => {
  let server: MongoServer;
  let coordination: Coordination;
  let now: number;

  async function start(replicaSet?: string): Promise<void> {
    now = Date.parse('2030-01-01T00:00:00Z');
    server = await MongoServer.start({
      now: () => now,
      ...(replicaSet !== undefined && { replicaSet }),
    });
    coordination = await openMongoCoordination({ url: server.url(), telemetry: silent });
  }
  afterEach(async () => {
    await coordination.close();
    await server.stop();
  });
  leavesNothingOpen();

  it("uses the server's clock, not its own", async () => {
    await start();
    await coordination.acquire('lease', 'one', 1000);
    expect(await coordination.acquire('lease', 'two', 1000)).to.equal(null);
    now += 999;
    expect(await coordination.acquire('lease', 'two', 1000)).to.equal(null);
    now += 1;
    expect(await coordination.acquire('lease', 'two', 1000)).to.deep.equal({
      fence: 2,
      remaining: 1000,
    });
  });

  it('gives a lease to the same owner again after a lost response', async () => {
    await start();
    const lost = { command: 'findAndModify', effect: { kind: 'drop', executed: true } } as const;
    server.fault(lost);
    const error: unknown = await coordination
      .acquire('lease', 'one', 1000)
      .catch((failure: unknown) => failure);
    expect(error).to.be.instanceOf(CoordinationError);
    expect(await coordination.acquire('lease', 'two', 1000)).to.equal(null);
    expect((await coordination.acquire('lease', 'one', 1000))?.fence).to.equal(1);
  });

  it('waits until a lease survives a crash, whatever the URL requests', async () => {
    await start('rs0');
    await coordination.close();
    const url = `${server.url()}${server.url().includes('?') ? '&' : '?'}w=0`;
    coordination = await openMongoCoordination({ url, telemetry: silent });
    expect((await coordination.acquire('lease', 'one', 1000))?.fence).to.equal(1);
    const taken = server.log.filter(({ command }) => command === 'findAndModify');
    expect(taken.map(({ body }) => body['writeConcern'])).to.deep.equal([
      { w: 'majority', j: true },
    ]);
  });

  it('counts once on a replica set despite a lost response', async () => {
    await start('rs0');
    server.fault({ command: 'findAndModify', effect: { kind: 'drop', executed: true } });
    expect((await coordination.count('logins', 1, 60_000)).sum).to.equal(1);
    expect((await coordination.count('logins', 1, 60_000)).sum).to.equal(2);
  });

  it('retries when two processes create the same lease, counter, member or value', async () => {
    await start();
    server.fault({ command: 'findAndModify', effect: DUPLICATE });
    expect(await coordination.acquire('lease', 'one', 1000)).to.not.equal(null);
    server.fault({ command: 'findAndModify', effect: DUPLICATE });
    expect((await coordination.count('logins', 3, 1000)).sum).to.equal(3);
    server.fault({ command: 'update', effect: DUPLICATE });
    await coordination.heartbeat('one', {}, 1000);
    server.fault({ command: 'update', effect: DUPLICATE });
    expect(await coordination.remember('text', 'value', 1)).to.equal(true);
    expect(await coordination.recall('text')).to.equal('value');
  });

  it('takes names and values that look like expressions literally', async () => {
    await start();
    const lease = await coordination.acquire('$$NOW', '$owner', 1000);
    expect(lease?.fence).to.equal(1);
    expect(await coordination.acquire('$$NOW', '$$ROOT', 1000)).to.equal(null);
    await coordination.heartbeat('$id', { text: '$$NOW' }, 1000);
    expect(await coordination.alive()).to.deep.equal([
      { id: '$id', about: { text: '$$NOW' }, remaining: 1000 },
    ]);
    await coordination.remember('$text', '$value', 1);
    expect(await coordination.recall('$text')).to.equal('$value');
  });

  it('keeps windows of different lengths apart', async () => {
    await start();
    await coordination.count('logins', 1, 1000);
    expect((await coordination.count('logins', 1, 60_000)).sum).to.equal(1);
    expect((await coordination.count('logins', 1, 1000)).sum).to.equal(2);
  });

  it('lets the server delete expired members and counters', async () => {
    await start();
    await coordination.heartbeat('one', {}, 1000);
    await coordination.count('logins', 1, 1000);
    for (const name of ['_members', '_counters']) {
      const expiring = server.indexes('svc', name).filter((one) => 'expireAfterSeconds' in one);
      expect(expiring.map((one) => one['key'])).to.deep.equal([{ expires: 1 }]);
    }
  });

  it('retries the creation of its indexes after a failure', async () => {
    await start();
    server.fault({
      command: 'createIndexes',
      effect: { kind: 'error', code: 14031, codeName: 'OutOfDiskSpace', message: 'not now' },
    });
    const error: unknown = await coordination
      .heartbeat('one', {}, 1000)
      .catch((failure: unknown) => failure);
    expect(error).to.be.instanceOf(CoordinationError);
    await coordination.heartbeat('one', {}, 1000);
    expect(await coordination.alive()).to.have.length(1);
  });
});

describe('coordination in a sharded cluster of MongoDB', () => {
  /** How far one router's clock is ahead of the other's. Milliseconds. */
  const APART = 2_000;
  const TTL = 3_000;
  let routers: readonly MongoServer[];
  let throughFast: Coordination;
  let throughSlow: Coordination;
  let now: number;

  afterEach(async () => {
    await throughFast.close();
    await throughSlow.close();
    for (const router of routers) await router.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    now = Date.parse('2030-01-01T00:00:00Z');
    const slow = await MongoServer.start({ sharded: true, now: () => now });
    const fast = await MongoServer.start({
      sharded: true,
      now: () => now + APART,
      beside: slow,
    });
    routers = [slow, fast];
    throughSlow = await openMongoCoordination({ url: slow.url(), telemetry: silent });
    throughFast = await openMongoCoordination({ url: fast.url(), telemetry: silent });
  });

  it('leaves a lease with its owner, whichever router renewed it', async () => {
    for (const through of [throughFast, throughSlow, throughFast]) {
      expect(await through.acquire('lease', 'one', TTL)).to.deep.equal({
        fence: 1,
        remaining: TTL,
      });
      expect(await throughSlow.acquire('lease', 'two', TTL)).to.equal(null);
      expect(await throughFast.acquire('lease', 'two', TTL)).to.equal(null);
      now += 500;
    }
  });

  it('knows the live members, whichever router they used', async () => {
    await throughFast.heartbeat('one', {}, TTL);
    expect((await throughSlow.alive()).map(({ id }) => id)).to.deep.equal(['one']);
    await throughSlow.heartbeat('one', {}, TTL);
    expect((await throughFast.alive()).map(({ id }) => id)).to.deep.equal(['one']);
  });

  it('treats rows of a clock set back by more than their duration as expired', async () => {
    await throughFast.acquire('lease', 'one', TTL);
    await throughFast.heartbeat('one', {}, TTL);
    now -= APART + TTL;
    expect(await throughFast.alive()).to.deep.equal([]);
    expect((await throughSlow.acquire('lease', 'two', TTL))?.fence).to.equal(2);
  });
});
