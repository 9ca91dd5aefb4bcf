import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openStores } from '../../app/stores.ts';
import { catalogue } from '../../domain/events/catalogue.ts';
import { silent } from '../../observability/telemetry.ts';
import { ReadModelError } from '../../projections/read-model.ts';
import { runsProjection } from '../../projections/views/runs.ts';
import { makeTemporaryDirectory } from '../support/temporary-directory.ts';

describe('the stores of a process', () => {
  it('fail with the errors of the ports, although their adapters are loaded on demand', async () => {
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

  it('prepare rarely used parts gradually, and stop when asked', async () => {
    const { path: dataDirectory, remove } = await makeTemporaryDirectory();
    const settings = { dataDirectory, eventStoreUrl: undefined, readModelUrl: undefined };
    const stores = await openStores(settings, silent);
    const stopping = new AbortController();
    const pauses: number[] = [];
    const clock = {
      async sleep(milliseconds: number): Promise<void> {
        pauses.push(milliseconds);
        if (pauses.length < 3) return;
        stopping.abort();
        throw stopping.signal.reason;
      },
    };
    try {
      await stores.warmUp(clock, stopping.signal);
      expect(pauses).to.deep.equal([200, 200, 200]);
      pauses.length = 0;
      const whole = { sleep: async (milliseconds: number) => void pauses.push(milliseconds) };
      await stores.warmUp(whole, new AbortController().signal);
      expect(pauses.length).to.equal(Object.keys(catalogue).length);
    } finally {
      await stores.close();
      await remove();
    }
  });

  it('report the setting of a folder that cannot be created', async () => {
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
