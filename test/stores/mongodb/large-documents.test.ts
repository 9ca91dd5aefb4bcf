import { expect } from 'chai';
import { BEGINNING } from '../../../domain/event-store.ts';
import { silent } from '../../../observability/telemetry.ts';
import type { Projection, ReadModel, ViewWriter } from '../../../projections/read-model.ts';
import { splitIntoParts } from '../../../stores/mongodb/document-parts.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import {
  at,
  fill,
  thing,
  thingsProjection,
  writerOf,
  type Thing,
} from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';

const MIB = 1024 * 1024;

describe('JSON that is too large for a row', () => {
  it('is split into parts that join up, never within a character', () => {
    for (const start of ['', 'x']) {
      const text = start + '\u{1F389}'.repeat(5 * MIB);
      const parts = splitIntoParts(text) ?? [];
      expect(parts).to.have.length.greaterThan(1);
      expect(parts.join('') === text).to.equal(true);
      for (const part of parts) {
        expect(Buffer.byteLength(part)).to.be.lessThan(16 * MIB);
        expect(part).not.to.match(/[\uD800-\uDBFF]$/);
      }
    }
  });

  it('is measured in bytes', () => {
    expect(splitIntoParts('x'.repeat(8 * MIB))).to.equal(null);
    expect(splitIntoParts('é'.repeat(5 * MIB))).to.have.length(2);
  });
});

for (const replicaSet of [undefined, 'rs0']) {
  describe(`a large document on ${replicaSet === undefined ? 'a standalone server' : 'a replica set'}`, () => {
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
      server = await MongoServer.start(replicaSet === undefined ? {} : { replicaSet });
      readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
      projection = thingsProjection();
      collection = `${projection.name}_s1_g1`;
    });

    const large = (name: string): Thing => ({ name, about: 'x'.repeat(9 * MIB) });
    const parts = () => server.documents('svc', `${collection}_parts`).length;
    const nameOf = async (): Promise<unknown> =>
      (await readModel.get(projection, 'a'))?.document.name;

    async function names(writer: ViewWriter): Promise<readonly unknown[]> {
      const found = await readModel.find(projection, { filters: [], sort: [], limit: 9 });
      const page = await writer.page(null, 9);
      const loaded = [...(await writer.load(['a', 'b'])).values()];
      const lengths = [...found, ...page, ...loaded].map(({ document }) => [
        document?.['name'],
        typeof document?.['about'] === 'string' ? document['about'].length : 0,
      ]);
      return lengths;
    }

    it('is complete wherever it is read', async () => {
      await fill(readModel, projection, [thing('a', 1, large('one')), thing('b', 1, {})]);
      const writer = await writerOf(readModel, projection);
      const [one, two] = [
        ['one', 9 * MIB],
        [undefined, 0],
      ];
      expect(await names(writer)).to.deep.equal([one, two, one, two, one, two]);
      expect(parts()).to.equal(3);
    });

    it('is returned with others in as many batches as it takes', async () => {
      const about = 'x'.repeat(7 * MIB);
      for (const position of [1, 2, 3]) {
        await fill(readModel, projection, [thing(`k${position}`, position, { about })]);
      }
      const keys = ['k1', 'k2', 'k3'];
      const found = await readModel.find(projection, { filters: [], sort: [], limit: 9 });
      expect(found.map(({ key }) => key)).to.deep.equal(keys);
      const writer = await writerOf(readModel, projection);
      expect([...(await writer.load(keys)).keys()]).to.have.members(keys);
      expect((await writer.page(null, 3)).map(({ key }) => key)).to.deep.equal(keys);
      expect(parts()).to.equal(0);
      expect(server.log.filter(({ command }) => command === 'getMore')).to.have.length(3);
    });

    it('leaves no parts behind when it changes, shrinks or is deleted', async () => {
      const writer = await writerOf(readModel, projection);
      let last = BEGINNING;
      for (const [position, document, left] of [
        [1, large('one'), 3],
        [2, large('two'), 3],
        [3, { name: 'small' }, 0],
        [4, large('three'), 3],
        [5, null, 0],
      ] as const) {
        const to = at(position);
        await writer.write({ documents: [thing('a', position, document)], from: last, to });
        last = to;
        expect(parts(), String(document?.name)).to.equal(left);
      }
    });

    it('is deleted by a later writer too, and with its generation', async () => {
      await fill(readModel, projection, [thing('a', 1, large('one')), thing('b', 1, large('b'))]);
      const writer = await writerOf(readModel, projection);
      await writer.load(['a']);
      await writer.write({ documents: [thing('a', 2, null)], from: at(1), to: at(2) });
      expect(parts()).to.equal(3);
      await fill(readModel, projection, [], 2);
      await readModel.discard(projection, 1);
      expect(parts()).to.equal(0);
    });

    it('causes no error when its generation is half discarded', async () => {
      await fill(readModel, projection, [thing('a', 1, large('one'))]);
      await fill(readModel, projection, [], 2);
      let drops = 0;
      server.fault({
        command: 'drop',
        when: () => (drops += 1) === 2,
        effect: { kind: 'error', code: 14031, codeName: 'OutOfDiskSpace', message: 'it ends' },
      });
      const failure = await readModel.discard(projection, 1).catch((error: unknown) => error);
      expect(failure).to.be.instanceOf(Error);
      const writer = await writerOf(readModel, projection, { generation: 1 });
      expect([...(await writer.load(['a']))]).to.deep.equal([]);
      await writer.close();
      await readModel.discard(projection, 1);
      expect(parts()).to.equal(0);
    });

    it('is read again when it is replaced during the read', async () => {
      await fill(readModel, projection, [thing('a', 1, large('one'))]);
      const replace = (change: object) => ({
        command: 'find',
        collection: `${collection}_parts`,
        effect: {
          kind: 'interpose',
          act: () => {
            server.execute('svc', {
              delete: `${collection}_parts`,
              deletes: [{ q: {}, limit: 0 }],
            });
            server.execute('svc', {
              update: collection,
              updates: [{ q: { _id: 'a' }, u: change }],
            });
          },
        } as const,
      });
      const small = { $set: { _pos: at(2), d: '{"name":"two"}' }, $unset: { parts: '' } };
      server.fault(replace(small));
      expect(await nameOf()).to.equal('two');
      await fill(readModel, projection, [thing('a', 3, large('three'))]);
      server.fault(replace({ $set: { live: false }, $unset: { d: '', f: '', parts: '' } }));
      expect(await readModel.get(projection, 'a')).to.equal(null);
    });
  });
}
