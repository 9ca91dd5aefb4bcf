import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import { fill, keysOf, thing, thingsProjection } from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';

describe('a query of MongoDB', () => {
  let server: MongoServer;
  let readModel: ReadModel;

  afterEach(async () => {
    await readModel.close();
    await server.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    server = await MongoServer.start({ sortMemory: 10_000 });
    readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
  });

  it('finds a page in an order without an index, however far it is', async () => {
    const projection = thingsProjection();
    const name = 'x'.repeat(1_000);
    const documents = Array.from({ length: 20 }, (_, n) =>
      thing(`k${String(n).padStart(2, '0')}`, n + 1, { name, amount: n, active: true }),
    );
    await fill(readModel, projection, documents);
    const page = await keysOf(readModel, projection, {
      filters: [{ field: 'active', op: 'eq', value: true }],
      sort: [{ field: 'amount', direction: 'descending' }],
      offset: 15,
      limit: 2,
    });
    expect(page).to.deep.equal(['k04', 'k03']);
  });

  it('treats U+0000 like any other character', async () => {
    const projection = thingsProjection();
    const name = 'before\0after';
    await fill(readModel, projection, [
      thing('a', 1, { name: 'before' }),
      thing('a\0', 2, { name, tags: ['\0', 'z'] }),
    ]);
    for (const filter of [
      { field: 'name', op: 'eq', value: name },
      { field: 'name', op: 'contains', value: 'E\0a' },
      { field: 'name', op: 'in', value: ['none', name] },
      { field: 'tags', op: 'has', value: '\0' },
    ] as const) {
      const found = await keysOf(readModel, projection, { filters: [filter] });
      expect(found, JSON.stringify(filter)).to.deep.equal(['a\0']);
    }
    expect((await readModel.get(projection, 'a\0'))?.document.name).to.equal(name);
  });
});
