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
import { loggedCommands } from './logged-commands.ts';

/** Most documents of most batches are new, and an insert costs a server less than an upsert. */
for (const [kind, replicaSet, before, after] of [
  ['a standalone server', undefined, ['findAndModify _checkpoints'], ['update _checkpoints 1']],
  ['a replica set', 'rs0', ['update _checkpoints 1'], ['commitTransaction']],
] as const) {
  describe(`a document without a row on ${kind}`, () => {
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
      readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
      projection = thingsProjection();
      collection = `${projection.name}_s1_g1`;
      writer = await writerOf(readModel, projection);
      server.clearLog();
    });

    const rows = () => server.documents('svc', collection);
    const stored = () => rows().map((row) => [row['_id'], row['_pos'], row['d']]);
    const insertRow = (position: number): void =>
      void server.execute('svc', {
        insert: collection,
        documents: [{ _id: 'a', _pos: at(position), live: true, d: '{"amount":7}', f: {} }],
      });

    it('is inserted if it was loaded before, and the others are changed in one more command', async () => {
      await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
      await writer.load(['a', 'b', 'c', 'd']);
      server.clearLog();
      const documents = [
        thing('a', 2, { amount: 2 }),
        thing('b', 2, { tags: ['x'] }),
        thing('c', 2, null),
        thing('d', 3, {}),
      ];
      await writer.write({ documents, from: at(1), to: at(3) });
      const written = ['insert rows 2', 'update rows 2'];
      expect(loggedCommands(server)).to.deep.equal([...before, ...written, ...after]);
      const { name, team, amount, active } = { name: null, team: null, amount: null, active: null };
      const found = new Map(rows().map((row) => [row['_id'], row]));
      expect(found.get('b')).to.deep.equal({
        _id: 'b',
        _pos: at(2),
        live: true,
        d: '{"tags":["x"]}',
        f: { name, team, amount, active, tags: ['x'] },
      });
      expect(found.get('c')).to.include({ live: false }).and.to.have.property('gone');
    });

    it('is inserted only by the batch after its lookup, because it may exist later', async () => {
      await writer.load(['a']);
      await writer.write({ documents: [thing('a', 1, {})], from: BEGINNING, to: at(1) });
      server.clearLog();
      await writer.write({ documents: [thing('a', 2, {})], from: at(1), to: at(2) });
      expect(loggedCommands(server)).to.deep.equal([...before, 'update rows 1', ...after]);
    });

    for (const [what, position, kept] of [
      ['a later row', 3, ['a', at(3), '{"amount":7}']],
      ['the same row', 2, ['a', at(2), '{"amount":7}']],
      ['an earlier row', 1, ['a', at(2), '{"amount":2}']],
    ] as const) {
      it(`may collide with ${what} that has appeared since, and the later version stays`, async () => {
        await writer.load(['a', 'b']);
        insertRow(position);
        const documents = [thing('a', 2, { amount: 2 }), thing('b', 2, {})];
        await writer.write({ documents, from: BEGINNING, to: at(2) });
        expect(stored()).to.have.deep.members([kept, ['b', at(2), '{}']]);
        expect(await writer.checkpoint()).to.equal(at(2));
      });
    }

    it('reports a rejection by another unique index', async () => {
      server.execute('svc', {
        createIndexes: collection,
        indexes: [{ name: 'somebody_elses', key: { 'f.name': 1 }, unique: true }],
      });
      await writer.load(['a', 'b']);
      const twins = [thing('a', 1, { name: 'one' }), thing('b', 1, { name: 'one' })];
      const batch = { documents: twins, from: BEGINNING, to: at(1) };
      const written = writer.write(batch);
      await rejectsWith('UNAVAILABLE', written);
      expect(String(await written.catch((error: unknown) => error))).to.contain('somebody_elses');
      expect(await writer.checkpoint()).to.equal(BEGINNING);
    });
  });
}
