import { expect } from 'chai';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel } from '../../../projections/read-model.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import {
  at,
  contents,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type Thing,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';

/** Without transactions every step must be correct by itself. */
describe('a guarded write', () => {
  let server: MongoServer;
  let readModel: ReadModel;
  let projection: Projection<Thing>;
  let collection: string;

  afterEach(async () => {
    await readModel.close();
    await server.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    server = await MongoServer.start();
    readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
    projection = thingsProjection();
    collection = `${projection.name}_s1_g1`;
  });

  const kept = async () => [...(await contents(readModel, projection)).values()];

  it('checks the checkpoint before it writes any document', async () => {
    const older = await writerOf(readModel, projection, { fence: 1 });
    await writerOf(readModel, projection, { fence: 2 });
    server.clearLog();
    const late = older.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await rejectsWith('FENCED', late);
    expect(server.log.some((entry) => entry.command === 'update')).to.equal(false);
    expect(server.documents('svc', collection)).to.deep.equal([]);
  });

  it('changes nothing for an old owner that was paused before its documents', async () => {
    const older = await writerOf(readModel, projection, { fence: 1 });
    const pause = server.fault({ command: 'update', collection, effect: { kind: 'hold' } });
    const late = older.write({
      documents: [
        thing('changed', 1, { name: 'old' }),
        thing('deleted', 2, { name: 'old' }),
        thing('same', 3, { name: 'same' }),
      ],
      from: BEGINNING,
      to: at(3),
    });
    await pause.met;

    const newer = await writerOf(readModel, projection, { fence: 2 });
    await newer.write({
      documents: [
        thing('changed', 4, { name: 'new' }),
        thing('deleted', 5, null),
        thing('same', 3, { name: 'same' }),
      ],
      from: BEGINNING,
      to: at(5),
    });
    pause.release();
    await rejectsWith('FENCED', late);
    await readModel.switchTo(projection, 1);
    expect(await kept()).to.deep.equal([
      thing('changed', 4, { name: 'new' }),
      thing('same', 3, { name: 'same' }),
    ]);
    expect(await newer.checkpoint()).to.equal(at(5));
  });

  it('does not move the checkpoint for an old owner that was paused before it', async () => {
    const older = await writerOf(readModel, projection, { fence: 1 });
    const pause = server.fault({
      command: 'update',
      collection: '_checkpoints',
      effect: { kind: 'hold' },
    });
    const late = older.write({
      documents: [thing('a', 1, { amount: 1 })],
      from: BEGINNING,
      to: at(1),
    });
    await pause.met;
    const newer = await writerOf(readModel, projection, { fence: 2 });
    const loaded = await newer.load(['a']);
    expect(loaded.get('a')?.position).to.equal(at(1));
    pause.release();
    await rejectsWith('FENCED', late);
    expect(await newer.checkpoint()).to.equal(BEGINNING);
    await newer.write({ documents: [], from: BEGINNING, to: at(1) });
  });

  it('does not mistake a failed insert for a later document', async () => {
    const writer = await writerOf(readModel, projection);
    const batch = { documents: [thing('a', 2, { name: 'later' })], from: BEGINNING, to: at(2) };
    // The server's response to the second of two concurrent inserts. The first one has the earlier position here.
    server.fault({
      command: 'update',
      collection,
      effect: {
        kind: 'answer',
        reply: {
          n: 0,
          nModified: 0,
          writeErrors: [{ index: 0, code: 11000, errmsg: 'E11000 duplicate key error' }],
          ok: 1,
        },
      },
    });
    server.execute('svc', {
      insert: collection,
      documents: [{ _id: 'a', _pos: at(1), live: true, d: '{"name":"earlier"}', f: {} }],
    });
    await writer.write(batch);
    await readModel.switchTo(projection, 1);
    expect(await kept()).to.deep.equal(batch.documents);
  });

  it('reports a duplicate key in another index', async () => {
    const writer = await writerOf(readModel, projection);
    server.execute('svc', {
      createIndexes: collection,
      indexes: [{ name: 'somebody_elses', key: { 'f.name': 1 }, unique: true }],
    });
    const batch = {
      documents: [thing('a', 1, { name: 'one' }), thing('b', 2, { name: 'one' })],
      from: BEGINNING,
      to: at(2),
    };
    await rejectsWith('UNAVAILABLE', writer.write(batch));
    const error: unknown = await writer.write(batch).catch((failure: unknown) => failure);
    expect(String(error)).to.contain('E11000').and.contain('somebody_elses');
    expect(await writer.checkpoint()).to.equal(BEGINNING);
  });

  it('reports any other failure, and does not move the checkpoint', async () => {
    const writer = await writerOf(readModel, projection);
    server.fault({
      command: 'update',
      collection,
      effect: { kind: 'error', code: 14031, codeName: 'OutOfDiskSpace', message: 'not authorized' },
    });
    const write = () =>
      writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    const error: unknown = await write().catch((failure: unknown) => failure);
    expect(String(error)).to.contain('refused').and.contain('not authorized');
    expect(await writer.checkpoint()).to.equal(BEGINNING);
    await write();
  });

  it('writes the latest of several documents with one key', async () => {
    const writer = await writerOf(readModel, projection);
    await writer.write({
      documents: [
        thing('a', 1, { name: 'first' }),
        thing('a', 3, { name: 'third' }),
        thing('a', 2, null),
      ],
      from: BEGINNING,
      to: at(3),
    });
    await readModel.switchTo(projection, 1);
    expect(await kept()).to.deep.equal([thing('a', 3, { name: 'third' })]);
  });

  it('leaves a tombstone without content that expires', async () => {
    const writer = await writerOf(readModel, projection);
    await writer.write({
      documents: [thing('a', 1, { name: 'x' }), thing('never-was', 2, null)],
      from: BEGINNING,
      to: at(2),
    });
    await writer.write({ documents: [thing('a', 3, null)], from: at(2), to: at(3) });
    const stored = server.documents('svc', collection);
    expect(stored.map((row) => Object.keys(row).sort().join())).to.deep.equal([
      '_id,_pos,gone,live',
      '_id,_pos,gone,live',
    ]);
    const expiring = server.indexes('svc', collection).filter((one) => 'expireAfterSeconds' in one);
    expect(expiring.map((one) => one['key'])).to.deep.equal([{ gone: 1 }]);
  });

  it('counts without a filter as documents minus tombstones', async () => {
    const writer = await writerOf(readModel, projection);
    await writer.write({
      documents: [thing('a', 1, {}), thing('b', 2, {}), thing('c', 3, null)],
      from: BEGINNING,
      to: at(3),
    });
    await readModel.switchTo(projection, 1);
    server.clearLog();
    expect(await readModel.count(projection, [])).to.equal(2);
    expect(server.log.map(({ command }) => command)).to.include('count');
  });
});

describe('a generation in MongoDB', () => {
  let server: MongoServer;
  let readModel: ReadModel;

  afterEach(async () => {
    await readModel.close();
    await server.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    server = await MongoServer.start();
    // Time stands still, so a cached pointer never expires.
    readModel = await openMongoReadModel({
      url: server.url(),
      telemetry: silent,
      monotonic: () => 0,
    });
  });

  it('has its indexes at once, or after a bulk fill', async () => {
    const projection = thingsProjection();
    const keys = () =>
      server.indexes('svc', `${projection.name}_s1_g1`).map((one) => Object.keys(one['key'] ?? {}));
    const writer = await writerOf(readModel, projection, { bulk: true });
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await writer.checkpoint();
    expect(keys()).to.deep.equal([['_id']]);
    await writer.finish();
    const all = [
      ['_id'],
      ['live', 'f.name', '_id'],
      ['live', 'f.team', 'f.amount', '_id'],
      ['live', 'f.active', 'f.name', '_id'],
      ['live', 'f.amount', '_id'],
      ['live', 'f.tags', '_id'],
      ['gone'],
    ];
    expect(keys()).to.deep.equal(all);
    await writerOf(readModel, projection);
    expect(keys()).to.deep.equal(all);
  });

  it('has covered fields in its indexes, after those that define the order', async () => {
    const projection: Projection<Thing> = {
      ...thingsProjection(),
      indexes: [['name'], ['team', 'amount'], ['amount']],
      covered: [['active'], ['active', 'team', 'name']],
    };
    await writerOf(readModel, projection);
    const made = server.indexes('svc', `${projection.name}_s1_g1`);
    expect(made.map((one) => Object.keys(one['key'] ?? {}))).to.deep.equal([
      ['_id'],
      ['live', 'f.name', '_id', 'f.active'],
      ['live', 'f.team', 'f.amount', '_id', 'f.active', 'f.name'],
      ['live', 'f.amount', '_id'],
      ['gone'],
    ]);
  });

  it('does not wait for the journal during a bulk fill, but for all of it at the end', async () => {
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection, { bulk: true });
    server.clearLog();
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await writer.finish();
    const concerns = server.log
      .filter(({ command }) => command === 'update')
      .map(({ body }) => body['writeConcern']);
    expect(concerns).to.deep.equal([
      { w: 1, j: false },
      { w: 'majority', j: true },
      { w: 'majority', j: true },
    ]);
  });

  it('is looked up again when the live one is gone', async () => {
    const projection = thingsProjection();
    const elsewhere = await openMongoReadModel({
      url: server.url(),
      telemetry: silent,
      serverSelectionTimeoutMs: 2001,
    });
    for (const generation of [1, 2]) {
      const writer = await writerOf(elsewhere, projection, { generation });
      await writer.write({
        documents: [thing('a', 1, { amount: generation })],
        from: BEGINNING,
        to: at(1),
      });
    }
    await elsewhere.switchTo(projection, 1);
    expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ amount: 1 });
    await elsewhere.switchTo(projection, 2);
    expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ amount: 1 });
    await elsewhere.discard(projection, 1);
    await elsewhere.close();
    expect((await readModel.get(projection, 'a'))?.document).to.deep.equal({ amount: 2 });
  });

  it('is listed until it is wholly discarded', async () => {
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection);
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    server.fault({ command: 'drop', effect: { kind: 'drop', executed: true } });
    await rejectsWith('UNAVAILABLE', readModel.discard(projection, 1));
    expect(await readModel.generations(projection)).to.deep.equal([1]);
    expect(await writer.checkpoint()).to.equal(BEGINNING);
    await rejectsWith('FENCED', writer.write({ documents: [], from: at(1), to: at(2) }));
    await readModel.discard(projection, 1);
    expect(await readModel.generations(projection)).to.deep.equal([]);
  });

  it('rejects an index over two lists', async () => {
    const projection = thingsProjection();
    const twoLists: Projection<Thing> = {
      ...projection,
      fields: { tags: 'text-list', teams: 'text-list' },
      indexes: [['tags', 'teams']],
    };
    const refusal: unknown = await writerOf(readModel, twoLists).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(TypeError);
  });

  it('returns nothing for a page of length 0', async () => {
    const projection = thingsProjection();
    const writer = await writerOf(readModel, projection);
    await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
    await readModel.switchTo(projection, 1);
    expect(await readModel.find(projection, { filters: [], sort: [], limit: 0 })).to.deep.equal([]);
  });
});
