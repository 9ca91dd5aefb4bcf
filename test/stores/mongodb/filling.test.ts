import { expect } from 'chai';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel, ViewWriter } from '../../../projections/read-model.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import {
  at,
  contents,
  rejectsWith,
  thing,
  thingsProjection,
  writerOf,
  type Thing,
  type Written,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { loggedCommands } from './logged-commands.ts';

for (const replicaSet of [undefined, 'rs0']) {
  describe(`a bulk fill on ${replicaSet === undefined ? 'a standalone server' : 'a replica set'}`, () => {
    let server: MongoServer;
    let readModel: ReadModel;
    let projection: Projection<Thing>;
    let collection: string;
    let writer: ViewWriter;

    afterEach(async () => {
      await readModel.close();
      await server.stop();
    });
    leavesNothingOpen();
    beforeEach(async () => {
      server = await MongoServer.start(replicaSet === undefined ? {} : { replicaSet });
      readModel = await openMongoReadModel({
        url: server.url(),
        telemetry: silent,
      });
      projection = thingsProjection();
      collection = `${projection.name}_s1_g1`;
      writer = await writerOf(readModel, projection, { bulk: true });
      server.clearLog();
    });

    /** Documents whose keys have no row, because their streams start in this batch. */
    const first = (...documents: Written[]) => documents.map((one) => ({ ...one, isFirst: true }));
    const stored = () => server.documents('svc', collection).map((row) => [row['_id'], row['d']]);
    const indexes = () => server.indexes('svc', collection).length;

    it('inserts documents without a row, and changes the others', async () => {
      const documents = first(thing('a', 1, {}), thing('b', 2, {}));
      await writer.write({ documents, from: BEGINNING, to: at(2) });
      await writer.checkpoint();
      await writer.load(['c', 'a']);
      const more = [thing('a', 3, { amount: 3 }), thing('c', 4, {}), ...first(thing('d', 5, {}))];
      await writer.write({ documents: more, from: at(2), to: at(5) });
      await writer.finish();
      expect(loggedCommands(server)).to.deep.equal([
        'find _checkpoints',
        'insert rows 2',
        'update _checkpoints 1',
        'find _checkpoints',
        'find rows',
        'find _checkpoints',
        'insert rows 2',
        'update rows 1',
        'update _checkpoints 1',
        'createIndexes rows',
        'update _checkpoints 1',
      ]);
      expect(stored()).to.have.deep.members([
        ['a', '{"amount":3}'],
        ['b', '{}'],
        ['c', '{}'],
        ['d', '{}'],
      ]);
    });

    it('continues while a batch is being written, and knows its documents', async () => {
      const slow = server.fault({ command: 'insert', collection, effect: { kind: 'hold' } });
      const documents = first(thing('a', 1, { amount: 1 }), thing('b', 2, null));
      await writer.write({ documents, from: BEGINNING, to: at(2) });
      await slow.met;
      const loaded = await writer.load(['a', 'b', 'c']);
      expect([...loaded]).to.deep.equal([
        ['a', { position: at(1), document: { amount: 1 } }],
        ['b', { position: at(2), document: null }],
      ]);
      const next = [thing('a', 3, { amount: 3 }), thing('c', 3, {})];
      const written = writer.write({ documents: next, from: at(2), to: at(3) });
      expect(stored()).to.deep.equal([]);
      slow.release();
      await written;
      expect(await writer.checkpoint()).to.equal(at(3));
      expect(stored()).to.have.deep.members([
        ['a', '{"amount":3}'],
        ['b', undefined],
        ['c', '{}'],
      ]);
    });

    for (const call of ['write', 'checkpoint', 'page', 'count', 'finish', 'close'] as const) {
      it(`reports a batch that could not be written at the next ${call}`, async () => {
        const refused = server.fault({
          command: 'insert',
          collection,
          effect: {
            kind: 'error',
            code: 14031,
            codeName: 'OutOfDiskSpace',
            message: 'not authorized',
          },
        });
        const documents = first(thing('a', 1, {}));
        await writer.write({ documents, from: BEGINNING, to: at(1) });
        await refused.met;
        const calls = {
          write: () => writer.write({ documents: [], from: at(1), to: at(2) }),
          checkpoint: () => writer.checkpoint(),
          page: () => writer.page(null, 1),
          count: () => writer.count(),
          finish: () => writer.finish(),
          close: () => writer.close(),
        };
        await rejectsWith('UNAVAILABLE', calls[call]());
        const again = await writerOf(readModel, projection, { bulk: true });
        expect(await again.checkpoint()).to.equal(BEGINNING);
      });
    }

    it('continues after a crash between its documents and its checkpoint', async () => {
      server.fault({
        command: 'update',
        collection: '_checkpoints',
        // On a replica set, the driver retries once.
        times: replicaSet === undefined ? 1 : 2,
        effect: { kind: 'drop', executed: false },
      });
      const batch = [thing('a', 1, { amount: 1 }), thing('b', 4, { amount: 4 }), thing('c', 3, {})];
      await writer.write({ documents: first(...batch), from: BEGINNING, to: at(4) });
      await rejectsWith('UNAVAILABLE', writer.close());
      expect(stored()).to.have.length(3);

      // The batches of the next fill may end elsewhere.
      const again = await writerOf(readModel, projection, { bulk: true });
      expect(await again.checkpoint()).to.equal(BEGINNING);
      const shorter = [thing('a', 2, { amount: 2 }), thing('b', 1, { amount: 1 })];
      await again.write({ documents: first(...shorter), from: BEGINNING, to: at(2) });
      await again.finish();
      expect(await again.checkpoint()).to.equal(at(2));
      await readModel.switchTo(projection, 1);
      expect([...(await contents(readModel, projection)).values()]).to.deep.equal([
        thing('a', 2, { amount: 2 }),
        thing('b', 4, { amount: 4 }),
        thing('c', 3, {}),
      ]);
    });

    it('creates its indexes after a crash before them', async () => {
      await writer.write({ documents: first(thing('a', 1, {})), from: BEGINNING, to: at(1) });
      await writer.checkpoint();
      server.fault({ command: 'createIndexes', effect: { kind: 'drop', executed: false } });
      await rejectsWith('UNAVAILABLE', writer.finish());
      await writer.close();
      expect(indexes()).to.equal(1);
      const again = await writerOf(readModel, projection, { bulk: true });
      expect(await again.checkpoint()).to.equal(at(1));
      await again.finish();
      expect(indexes()).to.equal(projection.indexes.length + 2);
      await readModel.switchTo(projection, 1);
      expect(indexes()).to.equal(projection.indexes.length + 2);
    });

    it('has its indexes when it goes live, even if its writer has not finished it', async () => {
      await writer.write({ documents: first(thing('a', 1, {})), from: BEGINNING, to: at(1) });
      await writer.close();
      expect(indexes()).to.equal(1);
      server.clearLog();
      await readModel.switchTo(projection, 1);
      expect(indexes()).to.equal(projection.indexes.length + 2);
      expect(loggedCommands(server)).to.deep.equal(['createIndexes rows', 'update _views 1']);
    });

    it('is rejected before it writes documents once another writer has taken over', async () => {
      await writerOf(readModel, projection, { bulk: true, fence: 2 });
      const late = writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
      await rejectsWith('FENCED', late);
      expect(stored()).to.deep.equal([]);
    });
  });
}
