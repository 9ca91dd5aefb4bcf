import { expect } from 'chai';
import {
  MongoBulkWriteError,
  MongoClient,
  MongoServerError,
  type ClientSession,
  type Collection,
  type Db,
} from 'mongodb';
import { randomUUID } from 'node:crypto';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { leaveOut, realServerAt } from '../../support/left-out.ts';

/** Facts that are not tested on a real server. */
const NO_TRANSACTIONS =
  'transactions of a real MongoDB: SVC_TEST_MONGODB_URL must name a replica set or a sharded cluster';

const realServer = realServerAt('SVC_TEST_MONGODB_URL');

interface Row {
  readonly _id: string;
  readonly n?: number;
  readonly value?: unknown;
  readonly list?: readonly string[];
  readonly other?: unknown;
}

interface Subject {
  readonly url: string;
  stop(): Promise<void>;
}

/**
 * The adapters' assumptions about a server, tested against the stand-in, and against a real server named by the
 * environment. This shows where the stand-in differs.
 *
 * @param options `alone`: the server is known to be standalone, without transactions
 */
function describeFacts(
  name: string,
  start: () => Promise<Subject>,
  { alone = false }: { readonly alone?: boolean } = {},
): void {
  describe(name, () => {
    let subject: Subject;
    let client: MongoClient;
    let db: Db;
    let rows: Collection<Row>;
    let replicated: boolean;

    afterEach(async () => {
      await db.dropDatabase();
      await client.close();
      await subject.stop();
    });
    leavesNothingOpen();
    beforeEach(async () => {
      subject = await start();
      client = new MongoClient(subject.url, { serverSelectionTimeoutMS: 10_000 });
      db = client.db(`svc_facts_${randomUUID().replaceAll('-', '')}`);
      rows = db.collection<Row>('rows');
      const hello = await db.admin().command({ hello: 1 });
      replicated = typeof hello['setName'] === 'string' || hello['msg'] === 'isdbgrid';
    });

    it('fails an upsert whose filter misses the document by another field than its key', async () => {
      const upsert = (n: number) =>
        rows.updateOne({ _id: 'a', n: { $lt: n } }, { $set: { n } }, { upsert: true });
      await upsert(5);
      expect(await failureOf(upsert(4))).to.include({ code: 11000 });
      expect((await upsert(6)).matchedCount).to.equal(1);
    });

    it('continues after an error in an unordered bulk, and names its index', async () => {
      await rows.insertOne({ _id: 'b', n: 5 });
      const upserts = ['a', 'b', 'c'].map((_id) => ({
        updateOne: { filter: { _id, n: { $lt: 1 } }, update: { $set: { n: 1 } }, upsert: true },
      }));
      const failure = await failureOf(rows.bulkWrite(upserts, { ordered: false }));
      expect(failure).to.be.instanceOf(MongoBulkWriteError).and.to.include({ code: 11000 });
      const faults = (failure as MongoBulkWriteError).writeErrors;
      expect([faults].flat().map(({ index, code }) => [index, code])).to.deep.equal([[1, 11000]]);
      expect(await rows.countDocuments()).to.equal(3);
    });

    it('inserts the new documents of an unordered insert, and names the index of each duplicate', async () => {
      await rows.insertOne({ _id: 'b', n: 5 });
      const three = ['a', 'b', 'c'].map((_id) => ({ _id, n: 1 }));
      const failure = await failureOf(rows.insertMany(three, { ordered: false }));
      expect(failure).to.be.instanceOf(MongoBulkWriteError).and.to.include({ code: 11000 });
      const { insertedCount, writeErrors } = failure as MongoBulkWriteError;
      expect([writeErrors].flat().map(({ index, code }) => [index, code])).to.deep.equal([
        [1, 11000],
      ]);
      expect(insertedCount).to.equal(2);
      expect((await rows.findOne({ _id: 'b' }))?.n).to.equal(5);
      expect(await rows.countDocuments()).to.equal(3);
    });

    it('names the places of failed inserts and updates in one unordered bulk', async () => {
      await rows.insertMany(['b', 'd'].map((_id) => ({ _id, n: 5 })));
      const upsert = (_id: string) => ({
        updateOne: { filter: { _id, n: { $lt: 1 } }, update: { $set: { n: 1 } }, upsert: true },
      });
      const insert = (_id: string) => ({ insertOne: { document: { _id, n: 1 } } });
      const mixed = [upsert('a'), insert('b'), insert('c'), upsert('d')];
      const failure = await failureOf(rows.bulkWrite(mixed, { ordered: false }));
      const { writeErrors } = failure as MongoBulkWriteError;
      const places = [writeErrors].flat().map(({ index, code }) => [index, code]);
      expect(places).to.have.deep.members([
        [1, 11000],
        [3, 11000],
      ]);
      expect(await rows.countDocuments({ n: 1 })).to.equal(2);
    });

    it('says how many statements of an unordered bulk have found their document', async () => {
      await rows.insertMany(['a', 'b', 'c'].map((_id) => ({ _id, n: _id === 'b' ? 7 : 5 })));
      const moves = ['a', 'b', 'c', 'd'].map((_id) => ({
        updateOne: { filter: { _id, n: { $lte: 5 } }, update: { $set: { n: 5 } } },
      }));
      const { matchedCount, upsertedCount } = await rows.bulkWrite(moves, { ordered: false });
      expect({ matchedCount, upsertedCount }).to.deep.equal({ matchedCount: 2, upsertedCount: 0 });
    });

    it('accepts 10,000 documents in one insert, and names as many duplicates', async () => {
      const many = Array.from({ length: 10_000 }, (_, n) => ({ _id: `key-${n}`, n }));
      await rows.insertMany(many, { ordered: false });
      const failure = await failureOf(rows.insertMany(many, { ordered: false }));
      const { writeErrors } = failure as MongoBulkWriteError;
      const codes = new Set([writeErrors].flat().map(({ code }) => code));
      expect([[writeErrors].flat().length, ...codes]).to.deep.equal([10_000, 11000]);
      expect(await rows.countDocuments()).to.equal(10_000);
    });

    it('creates indexes over stored documents, and nothing if they exist', async () => {
      await rows.insertMany(['a', 'b'].map((_id) => ({ _id, n: 1 })));
      const indexes = [
        { name: 'by_n', key: { n: 1, _id: 1 } },
        { name: 'gone', key: { value: 1 }, sparse: true, expireAfterSeconds: 60 },
      ];
      await db.command({ createIndexes: 'rows', indexes });
      await db.command({ createIndexes: 'rows', indexes });
      const names = (await rows.listIndexes().toArray()).map((one) => one['name'] as unknown);
      expect(names).to.have.members(['_id_', 'by_n', 'gone']);
      expect(await rows.find({ n: 1 }, { hint: 'by_n' }).toArray()).to.have.length(2);
    });

    it('creates a missing collection with its indexes', async () => {
      await db.command({ createIndexes: 'rows', indexes: [{ name: 'by_n', key: { n: 1 } }] });
      expect(await db.listCollections({ name: 'rows' }).toArray()).to.have.length(1);
    });

    it('sorts null before numbers, numbers before strings, strings by bytes, and these before booleans', async () => {
      const values = [null, -1, 2 ** 40, '', 'Z', 'z', 'é', '\uFFFD', '\u{1F600}', false, true];
      await rows.insertMany(values.map((value, i) => ({ _id: `k${i}`, value })).reverse());
      const found = await rows.find({}, { sort: { value: 1 } }).toArray();
      expect(found.map(({ value }) => value)).to.deep.equal(values);
      const compared = await rows.find({ value: { $lt: 'a' } }).toArray();
      expect(compared.map(({ value }) => value)).to.have.members(['', 'Z']);
    });

    it('rejects two lists in one index, and two operators over one field', async () => {
      await rows.createIndex({ list: 1, other: 1 });
      const lists = rows.insertOne({ _id: 'a', list: ['x'], other: ['y'] });
      expect(await failureOf(lists)).to.include({ code: 171 });
      const twice = { $set: { n: 1 }, $setOnInsert: { n: 2 } };
      const updated = rows.updateOne({ _id: 'a' }, twice, { upsert: true });
      expect(await failureOf(updated)).to.include({ code: 40 });
    });

    it('rejects a document that grows beyond 16 MiB', async () => {
      const half = 'x'.repeat(9 * 1024 * 1024);
      await rows.insertOne({ _id: 'a', value: half });
      const grown = await failureOf(rows.updateOne({ _id: 'a' }, { $set: { other: half } }));
      // The message is different if an update makes the document grow.
      expect(Number((grown as MongoServerError).code)).to.be.oneOf([10334, 17419, 17420]);
    });

    it('returns more than 16 MiB in several batches', async () => {
      const value = 'x'.repeat(7 * 1024 * 1024);
      for (const _id of ['a', 'b', 'c']) await rows.insertOne({ _id, value });
      const found = await db.command({ find: 'rows', batchSize: 3 });
      expect((found['cursor'] as { firstBatch: unknown[] }).firstBatch).to.have.length(2);
      expect(await rows.find({}, { batchSize: 3 }).toArray()).to.have.length(3);
    });

    it('rejects a pattern with U+0000, but accepts its escape', async () => {
      await rows.insertMany([
        { _id: 'a', value: 'x\0y' },
        { _id: 'b', value: 'x' },
      ]);
      const found = await failureOf(rows.findOne({ value: { $regex: 'x\0' } }));
      expect(found).to.include({ code: 2 });
      expect(await rows.countDocuments({ value: { $regex: '[xX]\\x00' } })).to.equal(1);
    });

    it('rejects another index of the same name, and accepts the same one again', async () => {
      const options = { name: 'one', expireAfterSeconds: 60 };
      await rows.createIndex({ n: 1 }, options);
      await rows.createIndex({ n: 1 }, options);
      expect(await failureOf(rows.createIndex({ value: 1 }, { name: 'one' }))).to.include({
        code: 86,
      });
      const longer = rows.createIndex({ n: 1 }, { ...options, expireAfterSeconds: 61 });
      expect(await failureOf(longer)).to.include({ code: 85 });
    });

    it('accepts an index quorum unless it is standalone', async () => {
      const made = rows.createIndex({ n: 1 }, { commitQuorum: 'majority' });
      if (replicated) await made;
      else expect(await failureOf(made)).to.include({ code: 2 });
    });

    it('ignores a missing collection', async () => {
      await db.dropCollection('nothing');
      expect(await db.collection('nothing').estimatedDocumentCount()).to.equal(0);
    });

    it('computes an update from the document as it was, with its own clock', async () => {
      const change = [{ $set: { value: '$n', n: { $add: ['$n', 1] }, other: '$$NOW' } }];
      await rows.insertOne({ _id: 'a', n: 1 });
      const after = await rows.findOneAndUpdate({ _id: 'a' }, change, { returnDocument: 'after' });
      expect(after).to.include({ value: 1, n: 2 });
      expect(after?.other).to.be.instanceOf(Date);
      const early = { $expr: { $lte: ['$other', { $add: ['$$NOW', 1] }] } };
      expect(await rows.countDocuments(early)).to.equal(1);
    });

    it('has transactions unless it is standalone', async () => {
      await rows.insertOne({ _id: 'a' });
      await inSession(async (session) => {
        session.startTransaction();
        const written = rows.updateOne({ _id: 'a' }, { $set: { n: 1 } }, { session });
        if (!replicated) {
          const { originalError } = (await failureOf(written)) as MongoServerError;
          expect(originalError).to.include({ code: 20 });
          return;
        }
        await written;
        expect(await rows.countDocuments({ n: 1 }, { session })).to.equal(1);
        expect(await rows.countDocuments({ n: 1 })).to.equal(0);
        await session.commitTransaction();
        expect(await rows.countDocuments({ n: 1 })).to.equal(1);
      });
    });

    // The rest is about transactions, which a standalone server lacks.
    if (alone) return;

    it("rejects concerns and counts in a transaction's statements", async function () {
      if (!replicated) leaveOut(this, NO_TRANSACTIONS);
      await rows.insertOne({ _id: 'a', n: 0 });
      const updates = [{ q: { _id: 'a' }, u: { $set: { n: 1 } } }];
      for (const [code, command] of [
        [72, { update: 'rows', updates, writeConcern: { w: 'majority' } }],
        [72, { find: 'rows', readConcern: { level: 'local' } }],
        [263, { count: 'rows' }],
      ] as const) {
        await inSession(async (session) => {
          session.startTransaction();
          await rows.findOne({ _id: 'a' }, { session });
          const failure = await failureOf(db.command(command, { session }));
          expect(failure, Object.keys(command)[0]).to.include({ code });
        });
      }
    });

    it('ends a transaction at a duplicate key, and starts the next one in its session', async function () {
      if (!replicated) leaveOut(this, NO_TRANSACTIONS);
      await rows.insertOne({ _id: 'b', n: 5 });
      const upsert = {
        updateOne: {
          filter: { _id: 'b', n: { $lt: 1 } },
          update: { $set: { n: 1 } },
          upsert: true,
        },
      };
      const inserts = ['a', 'b'].map((_id) => ({ insertOne: { document: { _id, n: 1 } } }));
      await inSession(async (session) => {
        for (const refused of [inserts, [upsert]]) {
          session.startTransaction();
          const failure = await failureOf(rows.bulkWrite(refused, { session }));
          expect(failure).to.be.instanceOf(MongoServerError).and.to.include({ code: 11000 });
          await session.abortTransaction();
        }
        session.startTransaction();
        expect(await rows.countDocuments({}, { session })).to.equal(1);
        const change = { updateOne: { filter: { _id: 'b' }, update: { $set: { n: 6 } } } };
        await rows.bulkWrite([inserts[0] ?? upsert, change], { session });
        await session.commitTransaction();
      });
      const found = await rows.find({}, { sort: { _id: 1 } }).toArray();
      expect(found.map(({ n }) => n)).to.deep.equal([1, 6]);
    });

    it("reports a write conflict at the transaction's statement", async function () {
      if (!replicated) leaveOut(this, NO_TRANSACTIONS);
      await rows.insertOne({ _id: 'a', n: 0 });
      const change = { updateOne: { filter: { _id: 'a' }, update: { $set: { n: 1 } } } };
      await inSession(async (session) => {
        session.startTransaction();
        await rows.findOne({ _id: 'a' }, { session });
        await rows.updateOne({ _id: 'a' }, { $set: { n: 2 } });
        expectConflict(await failureOf(rows.bulkWrite([change], { session })));
      });
      await inSession((first) =>
        inSession(async (second) => {
          first.startTransaction();
          second.startTransaction();
          await rows.bulkWrite([change], { session: first });
          expectConflict(await failureOf(rows.bulkWrite([change], { session: second })));
          await first.commitTransaction();
        }),
      );
      expect((await rows.findOne({ _id: 'a' }))?.n).to.equal(1);
    });

    it('lets a write wait for a transaction that holds its document, and other sessions end that', async function () {
      if (!replicated) leaveOut(this, NO_TRANSACTIONS);
      await rows.insertOne({ _id: 'a', n: 0 });
      await inSession(async (session) => {
        session.startTransaction();
        await rows.updateOne({ _id: 'a' }, { $inc: { n: 1 } }, { session });
        const late = rows.updateOne({ _id: 'a' }, { $inc: { n: 10 } }, { maxTimeMS: 50 });
        // A router may use another message.
        expect(Number(((await failureOf(late)) as MongoServerError).code)).to.be.oneOf([
          50, 202, 262,
        ]);
        const waiting = rows.updateOne({ _id: 'a' }, { $inc: { n: 100 } });
        await db.command({ killSessions: [{ id: session.id?.id }] });
        expect((await waiting).modifiedCount).to.equal(1);
        const failure = await failureOf(session.commitTransaction());
        expect(failure).to.be.instanceOf(MongoServerError);
        expect(Number((failure as MongoServerError).code)).to.be.oneOf([251, 11601]);
        session.startTransaction();
        await rows.updateOne({ _id: 'a' }, { $inc: { n: 1_000 } }, { session });
        await session.commitTransaction();
      });
      expect((await rows.findOne({ _id: 'a' }))?.n).to.equal(1_100);
    });

    async function inSession(act: (session: ClientSession) => Promise<void>): Promise<void> {
      const session = client.startSession();
      try {
        await act(session);
      } finally {
        if (session.inTransaction()) await session.abortTransaction();
        await session.endSession();
      }
    }
  });
}

function expectConflict(failure: unknown): void {
  expect(failure).to.be.instanceOf(MongoServerError).and.to.include({ code: 112 });
  expect((failure as MongoServerError).hasErrorLabel('TransientTransactionError')).to.equal(true);
}

function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => 'it resolved',
    (error: unknown) => error,
  );
}

describe('what the adapters assume about MongoDB', () => {
  for (const [kind, options] of [
    ['a standalone server', {}],
    ['a replica set', { replicaSet: 'rs0' }],
    ['a sharded cluster', { sharded: true }],
  ] as const) {
    describeFacts(
      `of the stand-in for ${kind}`,
      async () => {
        const server = await MongoServer.start(options);
        return { url: server.url(), stop: () => server.stop() };
      },
      { alone: kind === 'a standalone server' },
    );
  }
  if (realServer !== undefined) {
    describeFacts('of the server that the environment names', () =>
      Promise.resolve({ url: realServer, stop: () => Promise.resolve() }),
    );
  }
});
