import { expect } from 'chai';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel, ViewWriter } from '../../../projections/read-model.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import {
  at,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type Thing,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { eventually } from '../../support/signals.ts';

/** On a replica set the documents and the checkpoint are one transaction. */
describe('a write on a replica set', () => {
  let server: MongoServer;
  let readModel: ReadModel;
  let projection: Projection<Thing>;
  let collection: string;
  let writer: ViewWriter;
  const warnings: string[] = [];

  afterEach(async () => {
    await readModel.close();
    await server.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    server = await MongoServer.start({ replicaSet: 'rs0' });
    warnings.length = 0;
    const log = { ...silent.log, warn: (message: string) => void warnings.push(message) };
    readModel = await openMongoReadModel({
      url: server.url(),
      telemetry: { ...silent, log },
    });
    projection = thingsProjection();
    collection = `${projection.name}_s1_g1`;
    writer = await writerOf(readModel, projection);
    server.clearLog();
  });

  const batch = (number: number) => ({
    documents: [thing('a', number, { amount: number })],
    from: number === 1 ? BEGINNING : at(number - 1),
    to: at(number),
  });
  const amounts = () => server.documents('svc', collection).map((row) => row['d']);
  const commands = () => server.log.map(({ command }) => command);

  it('is one transaction', async () => {
    await writer.write(batch(1));
    expect(commands().filter((name) => name !== 'hello')).to.deep.equal([
      'update',
      'update',
      'commitTransaction',
    ]);
    expect(amounts()).to.deep.equal(['{"amount":1}']);
  });

  it('is a single command when only the checkpoint moves, and still checks its owner', async () => {
    await writer.write(batch(1));
    server.clearLog();
    await writer.write({ documents: [], from: at(1), to: at(2) });
    expect(commands()).to.deep.equal(['update']);
    expect(await writer.checkpoint()).to.equal(at(2));
    await rejectsWith('FENCED', writer.write({ documents: [], from: at(1), to: at(3) }));
    await writerOf(readModel, projection, { fence: 2 });
    await rejectsWith('FENCED', writer.write({ documents: [], from: at(2), to: at(3) }));
  });

  it('does not block a later checkpoint when its commit is lost', async () => {
    const label = { labels: ['RetryableWriteError'], message: 'shutting down' };
    server.fault({
      command: 'commitTransaction',
      times: 2,
      effect: { kind: 'error', code: 91, codeName: 'ShutdownInProgress', ...label },
    });
    await rejectsWith('UNAVAILABLE', writer.write(batch(1)));
    await writer.close();
    writer = await writerOf(readModel, projection);
    await writer.write({ documents: [], from: BEGINNING, to: at(1) });
    expect(await writer.checkpoint()).to.equal(at(1));
  });

  for (const [what, lost, again] of [
    ['commit', ['commitTransaction'], false],
    ['commit, by an earlier writer,', ['commitTransaction'], true],
    ['end after a failure', ['update', 'abortTransaction'], false],
  ] as const) {
    it(`does not block a later checkpoint when its ${what} is lost, even without retries by the driver`, async () => {
      const label = { labels: ['RetryableWriteError'], message: 'shutting down' };
      await readModel.close();
      readModel = await openMongoReadModel({
        url: `${server.url()}?retryWrites=false`,
        telemetry: silent,
        operationTimeoutMs: 1_000,
      });
      writer = await writerOf(readModel, projection);
      for (const command of lost) {
        server.fault({
          command,
          times: 2,
          when: (one) => command !== 'update' || one['update'] === collection,
          effect: { kind: 'error', code: 91, codeName: 'ShutdownInProgress', ...label },
        });
      }
      await rejectsWith('UNAVAILABLE', writer.write(batch(1)));
      if (again) {
        await writer.close();
        writer = await writerOf(readModel, projection);
      }
      await writer.write({ documents: [], from: BEGINNING, to: at(1) });
      expect(await writer.checkpoint()).to.equal(at(1));
      server.clearLog();
      await writer.write({ documents: [], from: at(1), to: at(2) });
      expect(commands()).to.deep.equal(['update']);
    });
  }

  it('leaves nothing behind when its documents are rejected', async () => {
    server.execute('svc', {
      createIndexes: collection,
      indexes: [{ name: 'somebody_elses', key: { 'f.name': 1 }, unique: true }],
    });
    const twins = [thing('a', 1, { name: 'one' }), thing('b', 1, { name: 'one' })];
    await rejectsWith(
      'UNAVAILABLE',
      writer.write({ documents: twins, from: BEGINNING, to: at(1) }),
    );
    expect(await writer.checkpoint()).to.equal(BEGINNING);
    expect(amounts()).to.deep.equal([]);
    await writer.write(batch(1));
  });

  it('restarts when its connection breaks', async () => {
    server.fault({ command: 'update', collection, effect: { kind: 'drop', executed: true } });
    await writer.write(batch(1));
    expect(amounts()).to.deep.equal(['{"amount":1}']);
    expect(await writer.checkpoint()).to.equal(at(1));
  });

  it('leaves nothing behind when the server goes down before its end', async () => {
    const away = server.fault({ command: 'update', collection, effect: { kind: 'hold' } });
    const outcome = rejectsWith('UNAVAILABLE', writer.write(batch(1)));
    await away.met;
    await server.stop();
    away.release();
    await outcome;
    await server.resume();
    // A driver may try two dead connections before it notices.
    await eventually(async () => (await writer.checkpoint()) === BEGINNING, {
      what: 'the server to be found again, with the checkpoint where it was',
    });
    expect(amounts()).to.deep.equal([]);
    await writer.write(batch(1));
    expect(amounts()).to.deep.equal(['{"amount":1}']);
  });

  it('counts once when the response to its commit is lost', async () => {
    server.fault({ command: 'commitTransaction', effect: { kind: 'drop', executed: true } });
    await writer.write(batch(1));
    expect(await writer.checkpoint()).to.equal(at(1));
    expect(amounts()).to.deep.equal(['{"amount":1}']);
    expect(commands().filter((name) => name === 'commitTransaction')).to.have.length(2);
  });

  it('restarts when another transaction was faster', async () => {
    server.fault({
      command: 'commitTransaction',
      effect: {
        kind: 'interpose',
        act: () =>
          void server.execute('svc', {
            update: collection,
            updates: [
              { q: { _id: 'a' }, u: { $set: { _pos: at(0), live: true, d: '{}' } }, upsert: true },
            ],
          }),
      },
    });
    await writer.write(batch(1));
    expect(amounts()).to.deep.equal(['{"amount":1}']);
    expect(commands().filter((name) => name === 'commitTransaction')).to.have.length(2);
  });

  it('restarts when another transaction was faster with a document', async () => {
    const insert = {
      insert: collection,
      documents: [{ _id: 'a', _pos: at(0), live: true, d: '{}', f: {} }],
    };
    server.fault({
      command: 'update',
      collection,
      effect: { kind: 'interpose', act: () => void server.execute('svc', insert) },
    });
    await writer.write(batch(1));
    expect(amounts()).to.deep.equal(['{"amount":1}']);
    expect(commands().filter((name) => name === 'commitTransaction')).to.have.length(1);
    expect(warnings).to.deep.equal([]);
  });

  it('uses no transaction once when it keeps losing to others', async () => {
    server.fault({
      command: 'update',
      times: Infinity,
      when: (command) => command['autocommit'] === false,
      effect: {
        kind: 'error',
        code: 112,
        codeName: 'WriteConflict',
        message: 'write conflict',
        labels: ['TransientTransactionError'],
      },
    });
    await writer.write(batch(1));
    expect(await writer.checkpoint()).to.equal(at(1));
    expect(amounts()).to.deep.equal(['{"amount":1}']);
    expect(warnings).to.deep.equal([]);
  });

  it("uses no transaction once when it is too large for the server's cache", async () => {
    const name = 'x'.repeat(3 * 1024 * 1024);
    const documents = Array.from({ length: 8 }, (_, i) => thing(`k${i}`, i + 1, { name }));
    await writer.write({ documents, from: BEGINNING, to: at(8) });
    expect(await writer.checkpoint()).to.equal(at(8));
    expect(server.documents('svc', collection)).to.have.length(8);
    expect(warnings).to.deep.equal([]);
    server.clearLog();
    const next = { documents: [thing('a', 9, {})], from: at(8), to: at(9) };
    await writer.write(next);
    expect(commands()).to.include('commitTransaction');
  });

  it('stops using transactions when the server rejects them, and logs it', async () => {
    server.fault({
      command: 'update',
      when: (command) => command['startTransaction'] === true,
      effect: {
        kind: 'error',
        code: 20,
        codeName: 'IllegalOperation',
        message: 'Transaction numbers are only allowed on a replica set member or mongos',
      },
    });
    await writer.write(batch(1));
    await writer.write(batch(2));
    expect(amounts()).to.deep.equal(['{"amount":2}']);
    expect(warnings).to.have.length(1);
    const begun = server.log.filter(({ body }) => body['startTransaction'] === true);
    expect(begun).to.have.length(1);
  });

  it('does not block others when its owner died in it', async () => {
    const other = await openMongoReadModel({
      url: server.url(),
      telemetry: silent,
      serverSelectionTimeoutMs: 2_001,
      operationTimeoutMs: 1_000,
    });
    const dead = server.fault({ command: 'update', collection, effect: { kind: 'hold' } });
    const lost = rejectsWith('FENCED', writer.write(batch(1)));
    await dead.met;
    const next = await writerOf(other, projection, { fence: 2 });
    await next.write({ documents: [thing('b', 1, {})], from: BEGINNING, to: at(1) });
    await next.close();
    await other.close();
    dead.release();
    await lost;
    expect(server.documents('svc', collection).map(({ _id }) => _id)).to.deep.equal(['b']);
  });

  it("blocks others for a while when its dead owner's session may not be ended", async () => {
    const dead = server.fault({ command: 'update', collection, effect: { kind: 'hold' } });
    const written = writer.write(batch(1));
    await dead.met;
    server.fault({
      command: 'killSessions',
      effect: { kind: 'error', code: 14031, codeName: 'OutOfDiskSpace', message: 'not authorized' },
    });
    const next = writerOf(readModel, projection, { fence: 2 });
    dead.release();
    await written;
    expect(await (await next).checkpoint()).to.equal(at(1));
  });

  it('leaves the transaction of a later owner alone', async () => {
    const later = await writerOf(readModel, projection, { fence: 2 });
    const slow = server.fault({ command: 'update', collection, effect: { kind: 'hold' } });
    const written = later.write(batch(1));
    await slow.met;
    await rejectsWith('FENCED', writerOf(readModel, projection, { fence: 1 }));
    slow.release();
    await written;
    expect(server.log.map(({ command }) => command)).not.to.include('killSessions');
  });

  it('rejects an old owner before any document', async () => {
    await writerOf(readModel, projection, { fence: 2 });
    server.clearLog();
    await rejectsWith('FENCED', writer.write(batch(1)));
    expect(server.log.filter((entry) => entry.collection === collection)).to.deep.equal([]);
  });

  it("waits for a majority in a bulk fill too, because a new primary may lack one member's writes", async () => {
    const bulk = await writerOf(readModel, projection, { generation: 2, bulk: true });
    server.clearLog();
    await bulk.write(batch(1));
    await bulk.finish();
    const concerns = server.log
      .filter(({ command }) => command === 'update')
      .map(({ body }) => body['writeConcern']);
    expect(concerns).to.deep.equal(Array(3).fill({ w: 'majority', j: true }));
  });

  it('builds indexes without waiting for a member that is down', async () => {
    const bulk = await writerOf(readModel, projection, { generation: 2, bulk: true });
    await bulk.finish();
    const made = server.log.filter(({ command }) => command === 'createIndexes');
    expect(made.map(({ body }) => body['commitQuorum'])).to.deep.equal(['majority']);
  });

  it('leaves no session behind when its indexes fail, however often it is retried', async () => {
    server.fault({
      command: 'createIndexes',
      times: Infinity,
      effect: { kind: 'error', code: 14031, codeName: 'OutOfDiskSpace', message: 'not authorized' },
    });
    const sessions = new Set<string>();
    for (let attempt = 1; attempt <= 5; attempt += 1) {
      await rejectsWith('UNAVAILABLE', writerOf(readModel, projection, { generation: 2 }));
      const known = server.documents('svc', '_checkpoints');
      sessions.add(String(known.find(({ generation }) => generation === 2)?.['session']));
    }
    expect(sessions.size).to.equal(1);
  });

  it('builds indexes even if the server does not know the quorum option', async () => {
    server.fault({
      command: 'createIndexes',
      when: (command) => 'commitQuorum' in command,
      times: Infinity,
      effect: {
        kind: 'error',
        code: 40415,
        codeName: 'IDLUnknownField',
        message: "BSON field 'createIndexes.commitQuorum' is an unknown field.",
      },
    });
    await writerOf(readModel, projection, { generation: 2 });
    expect(server.indexes('svc', `${projection.name}_s1_g2`)).to.have.length.greaterThan(2);
  });

  it('is retried by the driver in a bulk fill, and takes effect once', async () => {
    const bulk = await writerOf(readModel, projection, { generation: 2, bulk: true });
    server.fault({
      command: 'update',
      collection: `${projection.name}_s1_g2`,
      effect: { kind: 'drop', executed: true },
    });
    await bulk.write(batch(1));
    expect(await bulk.checkpoint()).to.equal(at(1));
    expect(server.documents('svc', `${projection.name}_s1_g2`)).to.have.length(1);
  });
});
