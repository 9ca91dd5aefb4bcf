import { expect } from 'chai';
import { startProjector } from '../../../app/projecting/start-projector.ts';
import type { Stores } from '../../../app/stores.ts';
import { collectingLines } from '../../support/reporting-to.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('a projector that crashes', () => {
  it('is restarted, with one line at first, one a minute with the count, and one once it keeps running', async () => {
    const clock = new VirtualClock();
    const lines: string[] = [];
    let starts = 0;
    let crashes = true;
    const stores = {
      get coordination() {
        starts += 1;
        if (crashes) throw new Error('out of memory');
        return { acquire: async () => null, release: async () => {}, recall: async () => null };
      },
      readModel: {},
      store: {},
    } as unknown as Stores;
    const projector = startProjector({
      data: {
        settings: {
          dataDirectory: '/nowhere',
          eventStoreUrl: undefined,
          // The projector then has no thread of its own.
          readModelUrl: 'mongodb://nowhere',
          logLevel: 'silent',
          roles: ['projector'],
          traces: null,
        },
        version: '1.2.3',
        owner: 'one',
        lease: 3_000,
      },
      stores,
      clock,
      telemetry: collectingLines(lines, () => clock.steady()),
      positions: { notify: () => {} },
      views: { update: () => {} },
    });
    await clock.advance(65_500);
    const crashed = 'the projector crashed; restarting';
    expect(lines).to.deep.equal([crashed, crashed]);
    expect(starts).to.equal(66);
    crashes = false;
    await clock.advance(10_000);
    expect(lines).to.have.lengthOf(2);
    await clock.advance(1_000);
    await projector.stop();
    expect(lines.slice(2)).to.deep.equal([`succeeded again after: ${crashed}`]);
  });
});
