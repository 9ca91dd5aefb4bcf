import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openStores } from '../../app/stores.ts';
import { silent } from '../../observability/telemetry.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
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

  it('names the setting of a folder that can not be made', async () => {
    const { path, remove } = await makeTemporaryDirectory();
    writeFileSync(join(path, 'file'), '');
    const dataDirectory = join(path, 'file', 'data');
    const settings = { dataDirectory, eventStoreUrl: undefined, readModelUrl: undefined };
    try {
      const error: unknown = await openStores(settings, silent).catch((fault: unknown) => fault);
      expect(String(error)).to.include(`SVC_DATA_DIR: ${dataDirectory} can't be made: ENOTDIR`);
    } finally {
      await remove();
    }
  });
});
