import { expect } from 'chai';
import { openStores } from '../../app/stores.ts';
import { silent } from '../../observability/telemetry.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/runs.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';

describe('the stores of a process', () => {
  it('fail with the errors that the ports name, although their adapters are loaded when they are needed', async () => {
    const { path: dataDirectory, remove } = await makeTemporaryDirectory();
    const settings = { dataDirectory, eventStoreUrl: undefined, readModelUrl: undefined };
    const stores = await openStores(settings, silent);
    try {
      const error: unknown = await stores.readModel
        .count(runsProjection, [])
        .catch((fault: unknown) => fault);
      expect(error).to.be.instanceOf(ReadModelError);
    } finally {
      await stores.close();
      await remove();
    }
  });
});
