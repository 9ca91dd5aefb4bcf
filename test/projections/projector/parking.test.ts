import { expect } from 'chai';
import { decorated } from '../../../domain/decorated.ts';
import { silent } from '../../../observability/telemetry.ts';
import { Parking, parkedProjection } from '../../../projections/projector/parking.ts';
import type { PoisonedKey } from '../../../projections/projector/fold-batch.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import { openSqliteReadModel } from '../../../stores/sqlite/read-model/read-model.ts';
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

describe('what is held back of the views', () => {
  const directory = useTemporaryDirectory();
  let readModel: ReadModel;
  beforeEach(async () => {
    readModel = await openSqliteReadModel({ directory: directory(), telemetry: silent });
  });
  afterEach(() => readModel.close());

  /** How many writers are open, beside the read model that counts them. */
  function counted(inner: ReadModel): {
    readonly readModel: ReadModel;
    readonly open: () => number;
  } {
    let open = 0;
    const counting = decorated(inner, {
      openWriter: async (projection, options) => {
        const writer = await inner.openWriter(projection, options);
        open += 1;
        return decorated(writer, {
          close: async () => {
            open -= 1;
            await writer.close();
          },
        });
      },
    });
    return { readModel: counting, open: () => open };
  }

  it('keeps no writer whose first checkpoint could not be kept', async () => {
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
});
