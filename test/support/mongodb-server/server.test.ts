import { connect } from 'node:net';
import { expect } from 'chai';
import {
  type Db,
  type Document,
  MongoBulkWriteError,
  MongoClient,
  MongoServerError,
} from 'mongodb';
import { leavesNothingOpen } from '../leaks.ts';
import { MongoServer } from './server.ts';

interface Row extends Document {
  readonly _id: string;
}

/** The stand-in, as the real driver sees it. */
describe('the stand-in for a MongoDB server', () => {
  let server: MongoServer;
  let client: MongoClient;
  let db: Db;
  let now: number;

  async function start(replicaSet?: string): Promise<void> {
    now = Date.parse('2030-01-01T00:00:00Z');
    server = await MongoServer.start({
      now: () => now,
      ...(replicaSet !== undefined && { replicaSet }),
    });
    client = new MongoClient(server.url(), { serverSelectionTimeoutMS: 10_000 });
    db = client.db('test');
  }
  const rows = () => db.collection<Row>('rows');
  async function failure(promise: Promise<unknown>): Promise<unknown> {
    return promise.then(
      () => 'the promise resolved',
      (error: unknown) => error,
    );
  }

  afterEach(async () => {
    await client.close();
    await server.stop();
  });
  leavesNothingOpen();

  it('returns more than one batch through a cursor', async () => {
    await start();
    await rows().insertMany(Array.from({ length: 250 }, (_, i) => ({ _id: `k${i}`, n: i })));
    const found = await rows()
      .find({ n: { $gte: 5 } }, { sort: { n: -1 }, skip: 1, batchSize: 50 })
      .toArray();
    expect(found).to.have.length(244);
    expect(found.at(0)).to.deep.equal({ _id: 'k248', n: 248 });
    expect(server.log.filter(({ command }) => command === 'getMore')).to.have.length(4);
  });

  it('sorts in memory up to its limit, and beyond only if it may use the disk', async () => {
    server = await MongoServer.start({ sortMemory: 10_000 });
    client = new MongoClient(server.url(), { serverSelectionTimeoutMS: 10_000 });
    db = client.db('test');
    const text = 'x'.repeat(1_000);
    await rows().insertMany(Array.from({ length: 12 }, (_, n) => ({ _id: `k${n}`, n, text })));
    const sorted = (skip: number, more = {}) =>
      rows()
        .find({}, { sort: { n: -1 }, skip, limit: 2, ...more })
        .toArray();
    expect(await sorted(5)).to.have.length(2);
    expect(await failure(sorted(9))).to.include({ code: 292 });
    expect(await sorted(9, { sort: { _id: 1 } })).to.have.length(2);
    expect(await sorted(9, { allowDiskUse: true })).to.have.length(2);
  });

  it('sorts null before numbers, numbers before strings, and strings in UTF-8 order', async () => {
    await start();
    const values = [null, -1, 2 ** 40, '', 'Z', 'z', '\uFFFD', '\u{1F600}', false, true];
    await rows().insertMany(values.map((value, i) => ({ _id: `k${i}`, value })).reverse());
    const found = await rows()
      .find({}, { sort: { value: 1 } })
      .toArray();
    expect(found.map((row) => row['value'] as unknown)).to.deep.equal(values);
  });

  it("rejects a duplicate key in a server's words", async () => {
    await start();
    await rows().createIndex({ 'f.name': 1 }, { unique: true, name: 'by_name' });
    await rows().insertOne({ _id: 'a', f: { name: 'x' } });
    const error = await failure(rows().insertOne({ _id: 'b', f: { name: 'x' } }));
    expect(error).to.be.instanceOf(MongoServerError);
    expect(error).to.deep.include({
      code: 11000,
      message:
        'E11000 duplicate key error collection: test.rows index: by_name dup key: { f.name: "x" }',
    });
  });

  it('continues after an error of an unordered bulk, and ends an ordered one', async () => {
    await start();
    await rows().insertOne({ _id: 'b' });
    const three = ['a', 'b', 'c'].map((_id) => ({ insertOne: { document: { _id } } }));
    const ordered = await failure(rows().bulkWrite(three, { ordered: true }));
    expect(ordered).to.be.instanceOf(MongoBulkWriteError);
    expect(await rows().countDocuments()).to.equal(2);
    await rows().deleteOne({ _id: 'a' });
    await failure(rows().bulkWrite(three, { ordered: false }));
    expect(await rows().countDocuments()).to.equal(3);
  });

  it('counts only what succeeded of an unordered command', async () => {
    await start();
    await rows().insertMany(['a', 'b'].map((_id) => ({ _id, n: 5 })));
    const upsert = (_id: string) => ({ q: { _id, n: { $lt: 5 } }, u: { $set: { n: 5 } } });
    const updates = ['a', 'c'].map((_id) => ({ ...upsert(_id), upsert: true }));
    const updated = await db.command({ update: 'rows', ordered: false, updates });
    expect(updated).to.deep.include({ n: 1, nModified: 0, upserted: [{ index: 1, _id: 'c' }] });
    await rows().createIndex({ only: 1 }, { unique: true, sparse: true });
    const same = ['a', 'b'].map((_id) => ({ q: { _id }, u: { $set: { only: 1 } } }));
    const twice = await db.command({ update: 'rows', ordered: false, updates: same });
    expect(twice).to.deep.include({ n: 1, nModified: 1 });
    const documents = ['d', 'a', 'e', 'b'].map((_id) => ({ _id, only: _id }));
    const inserted = await db.command({ insert: 'rows', ordered: false, documents });
    const faults = inserted['writeErrors'] as { index: number; code: number }[];
    expect(inserted['n']).to.equal(2);
    expect(faults.map(({ index, code }) => [index, code])).to.deep.equal([
      [1, 11000],
      [3, 11000],
    ]);
  });

  it('leaves out error messages beyond a megabyte', async () => {
    await start();
    const documents = ['x', 'y', 'z'].map((one) => ({ _id: one.repeat(600_000) }));
    await rows().insertMany(documents);
    const inserted = await db.command({ insert: 'rows', ordered: false, documents });
    const faults = inserted['writeErrors'] as { errmsg: string }[];
    expect(faults.map(({ errmsg }) => errmsg.length > 0)).to.deep.equal([true, true, false]);
  });

  it('rejects a command without statements, or with too many', async () => {
    await start();
    const documents = Array.from({ length: 100_001 }, (_, n) => ({ _id: String(n) }));
    expect(server.execute('test', { insert: 'rows', documents })).to.include({ code: 16 });
    expect(await failure(db.command({ insert: 'rows', documents: [] }))).to.include({ code: 16 });
    expect(await rows().countDocuments()).to.equal(0);
  });

  it('breaks the connection of a message that is too large', async () => {
    await start();
    const socket = connect(Number(server.address.split(':')[1]), '127.0.0.1');
    const broken = new Promise<void>((resolve) => {
      socket.on('error', () => undefined);
      socket.once('close', () => resolve());
    });
    const header = Buffer.alloc(16);
    header.writeInt32LE(48_000_001, 0);
    socket.write(header);
    await broken;
  });

  it('creates no indexes in a transaction', async () => {
    await start('rs0');
    await client.withSession(async (session) => {
      session.startTransaction();
      await rows().insertOne({ _id: 'a' }, { session });
      const indexes = [{ name: 'by_n', key: { n: 1 } }];
      const refused = db.command({ createIndexes: 'rows', indexes }, { session });
      expect(await failure(refused)).to.include({ code: 263 });
      await session.abortTransaction();
    });
  });

  it('fails an upsert whose filter misses the document by a field other than its key', async () => {
    await start();
    const upsert = (n: number) =>
      rows().updateOne({ _id: 'a', n: { $lt: n } }, { $set: { n } }, { upsert: true });
    await upsert(5);
    expect(await failure(upsert(4))).to.deep.include({ code: 11000 });
    await upsert(6);
    expect(await rows().findOne({ _id: 'a' })).to.deep.equal({ _id: 'a', n: 6 });
  });

  it('rejects two arrays in one index, and a changed key', async () => {
    await start();
    await rows().createIndex({ a: 1, b: 1 });
    expect(await failure(rows().insertOne({ _id: 'x', a: [1], b: [2] }))).to.include({ code: 171 });
    await rows().insertOne({ _id: 'x', a: [1], b: 2 });
    const changed = rows().findOneAndReplace({ a: 1 }, { _id: 'y' });
    expect(await failure(Promise.resolve(changed))).to.include({ code: 66 });
  });

  it('rejects two operators on one field', async () => {
    await start();
    const change = { $set: { 'a.b': 1 }, $setOnInsert: { a: {} } };
    const refused = await failure(rows().updateOne({ _id: 'x' }, change, { upsert: true }));
    expect(refused).to.include({ code: 40 });
  });

  it('rejects a document that grows beyond 16 MiB', async () => {
    await start();
    const half = 'x'.repeat(9 * 1024 * 1024);
    await rows().insertOne({ _id: 'x', one: half });
    expect(await failure(rows().updateOne({ _id: 'x' }, { $set: { two: half } }))).to.include({
      code: 10334,
    });
  });

  it('rejects another index with the same name, and the same one with other options', async () => {
    await start();
    await rows().createIndex({ a: 1 }, { name: 'one', expireAfterSeconds: 60 });
    await rows().createIndex({ a: 1 }, { name: 'one', expireAfterSeconds: 60 });
    const other = rows().createIndex({ b: 1 }, { name: 'one' });
    expect(await failure(other)).to.include({ code: 86 });
    const longer = rows().createIndex({ a: 1 }, { name: 'one', expireAfterSeconds: 61 });
    expect(await failure(longer)).to.include({ code: 85 });
  });

  it('accepts a quorum for an index only on a replica set', async () => {
    await start();
    const refused = await failure(rows().createIndex({ a: 1 }, { commitQuorum: 'majority' }));
    expect(refused).to.include({ code: 2 });
    await Promise.all([client.close(), server.stop()]);
    await start('rs0');
    await rows().createIndex({ a: 1 }, { commitQuorum: 'majority' });
  });

  it('computes updates from the previous document, with its own clock', async () => {
    await start();
    const swap = [{ $set: { a: '$b', b: '$a', at: '$$NOW', text: { $literal: '$$NOW' } } }];
    await rows().insertOne({ _id: 'x', a: 1, b: 2 });
    const after = await rows().findOneAndUpdate({ _id: 'x' }, swap, { returnDocument: 'after' });
    expect(after).to.deep.equal({ _id: 'x', a: 2, b: 1, at: new Date(now), text: '$$NOW' });
    now += 1000;
    const late = await rows()
      .aggregate([{ $match: { $expr: { $lt: ['$at', '$$NOW'] } } }])
      .toArray();
    expect(late).to.have.length(1);
  });

  it('has no transactions as a standalone server', async () => {
    await start();
    const attempt = client.withSession(async (session) => {
      session.startTransaction();
      await rows().insertOne({ _id: 'a' }, { session });
    });
    expect(await failure(attempt)).to.be.instanceOf(Error);
    expect(await rows().countDocuments()).to.equal(0);
  });

  it('shows a transaction to others after its commit, and undoes an aborted one', async () => {
    await start('rs0');
    await client.withSession(async (session) => {
      session.startTransaction();
      await rows().insertOne({ _id: 'a' }, { session });
      expect(await rows().countDocuments({}, { session })).to.equal(1);
      expect(await rows().countDocuments()).to.equal(0);
      await session.abortTransaction();
      session.startTransaction();
      await rows().insertOne({ _id: 'b' }, { session });
      await session.commitTransaction();
    });
    expect(await rows().find().toArray()).to.deep.equal([{ _id: 'b' }]);
  });

  it('rejects at once a write in a transaction to a document changed since its start', async () => {
    await start('rs0');
    await rows().insertOne({ _id: 'a', n: 0 });
    await client.withSession(async (session) => {
      session.startTransaction();
      expect(await rows().countDocuments({}, { session })).to.equal(1);
      await rows().updateOne({ _id: 'a' }, { $inc: { n: 10 } });
      const update = { updateOne: { filter: { _id: 'a' }, update: { $inc: { n: 1 } } } };
      const error = await failure(rows().bulkWrite([update], { session }));
      expect(error).to.be.instanceOf(MongoServerError).and.to.include({ code: 112 });
      expect((error as MongoServerError).hasErrorLabel('TransientTransactionError')).to.equal(true);
      expect(await failure(session.commitTransaction())).to.include({ code: 251 });
    });
    expect((await rows().findOne({ _id: 'a' }))?.['n']).to.equal(10);
  });

  it('lets a write wait for the transaction that holds its document, or until its timeout', async () => {
    await start('rs0');
    await rows().insertOne({ _id: 'a', n: 1 });
    await client.withSession(async (session) => {
      session.startTransaction();
      await rows().updateOne({ _id: 'a' }, { $inc: { n: 1 } }, { session });
      const waiting = rows().updateOne({ _id: 'a' }, { $mul: { n: 10 } });
      const brief = rows().updateOne({ _id: 'a' }, { $inc: { n: 5 } }, { maxTimeMS: 20 });
      expect(await failure(brief)).to.include({ code: 50 });
      expect((await rows().findOne({ _id: 'a' }))?.['n']).to.equal(1);
      await session.commitTransaction();
      await waiting;
    });
    expect((await rows().findOne({ _id: 'a' }))?.['n']).to.equal(20);
  });
});
