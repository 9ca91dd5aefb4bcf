import { expect } from 'chai';
import { join } from 'node:path';
import { decorate } from '../../../domain/decorate.ts';
import { silent } from '../../../observability/telemetry.ts';
import { Parking, parkedProjection } from '../../../projections/projector/parking.ts';
import type { PoisonedKey } from '../../../projections/projector/fold-batch.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
import { at } from '../../contracts/read-model-things.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { notAnswering, withWrites } from '../failing-stores.ts';

const VIEW = 'runs.4/1';

const poisoned = (key: string, position: string): PoisonedKey => {
  return {
    key,
    position,
    stream: `run-${key}`,
    revision: 0,
    type: 'RunRequested',
    error: 'broken',
  };
};

const stores: Readonly<
  Record<
    string,
    (directory: string) => Promise<{ readonly readModel: ReadModel; end(): Promise<void> }>
  >
> = {
  embedded: async (directory) => {
    const readModel = await openSqliteReadModel({
      directory: join(directory, 'own'),
      telemetry: silent,
    });
    return { readModel, end: () => readModel.close() };
  },
  'in MongoDB': async () => {
    const server = await MongoServer.start();
    const readModel = await openMongoReadModel({ url: server.url(), telemetry: silent });
    const end = async (): Promise<void> => {
      await readModel.close();
      await server.stop();
    };
    return { readModel, end };
  },
};

describe('parked keys', () => {
  const directory = useTemporaryDirectory();
  let readModel: ReadModel;
  beforeEach(async () => {
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
  });
  afterEach(() => readModel.close());

  /** Counts open writers of a read model. */
  function counted(inner: ReadModel): {
    readonly readModel: ReadModel;
    readonly open: () => number;
  } {
    let open = 0;
    const counting = decorate(inner, {
      openWriter: async (projection, options) => {
        const writer = await inner.openWriter(projection, options);
        open += 1;
        return decorate(writer, {
          close: async () => {
            open -= 1;
            await writer.close();
          },
        });
      },
    });
    return { readModel: counting, open: () => open };
  }

  it('keep no writer whose first checkpoint could not be stored', async () => {
    let failing = 3;
    const failingModel = withWrites(readModel, async (_name, _batch, go) => {
      failing -= 1;
      if (failing >= 0) throw notAnswering();
      await go();
    });
    const { readModel: watched, open } = counted(failingModel);
    const parking = new Parking(watched, 1);
    for (let i = 0; i < 3; i += 1) {
      const error: unknown = await parking
        .park(VIEW, [poisoned('r1', '1')])
        .catch((e: unknown) => e);
      expect(error).to.include({ code: 'UNAVAILABLE' });
      expect(open()).to.equal(0);
    }
    await parking.park(VIEW, [poisoned('r1', '1')]);
    expect([...(await parking.of(VIEW))]).to.deep.equal([['r1', '1']]);
    await parking.close();
    expect(open()).to.equal(0);
    expect(await readModel.count(parkedProjection, [])).to.equal(1);
  });

  for (const [where, begin] of Object.entries(stores)) {
    it(`are parked again at the same event after a release, ${where}`, async () => {
      const { readModel: opened, end } = await begin(directory());
      const parking = new Parking(opened, 1);
      const held = async (): Promise<unknown> => [...(await parking.of(VIEW))];
      for (let i = 0; i < 2; i += 1) {
        await parking.park(VIEW, [poisoned('r1', at(5))]);
        await parking.park(VIEW, [poisoned('r1', at(5))]);
        expect(await held()).to.deep.equal([['r1', at(5)]]);
        await parking.forget(VIEW, at(9));
        expect(await held()).to.deep.equal([]);
        await parking.park(VIEW, [poisoned('r1', at(7))]);
        expect(await held()).to.deep.equal([['r1', at(7)]]);
        await parking.park(VIEW, [poisoned('r1', at(8))]);
        expect(await held()).to.deep.equal([['r1', at(8)]]);
        await parking.release(VIEW, 'r1', at(6));
        expect(await held()).to.deep.equal([]);
      }
      expect(await opened.checkpoint(parkedProjection)).to.equal(at(9));
      await parking.close();
      await end();
    });
  }
});
