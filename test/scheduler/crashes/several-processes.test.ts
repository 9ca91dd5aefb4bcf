import { expect } from 'chai';
import { kinds } from './crash-kinds.ts';
import { crash } from './crash-scenario.ts';
import { longVersions } from '../../support/left-out.ts';

/** `SVC_TEST_LONG=1`: also with two processes, and one of three dies at each of the first appends. */
const long = longVersions();

/** The appends at which one of three processes dies. */
const APPENDS = [1, 2, 3, 4, 5, 6];

describe('several processes that schedule and work at once', function () {
  this.timeout(long ? 600_000 : 60_000);

  for (const count of long ? [2, 3] : [3]) {
    it(`neither lose nor duplicate a run with ${count} processes, whatever the kind of task`, async () => {
      const faults: string[] = [];
      for (const kind of kinds) {
        const outcome = await crash(kind, [], count - 1);
        faults.push(...outcome.faults.map((fault) => `${kind.name}: ${fault}`));
      }
      expect(faults).to.deep.equal([]);
    });
  }

  it('neither lose nor duplicate a run when one of three dies', async () => {
    const faults: string[] = [];
    let deaths = 0;
    for (const [index, kind] of kinds.entries()) {
      if (!long && index % 3 !== 1) continue;
      const appends = long ? APPENDS : APPENDS.filter((append) => append === (index % 6) + 1);
      for (const append of appends) {
        for (const when of long ? (['before', 'after'] as const) : (['before'] as const)) {
          const outcome = await crash(kind, [{ append, when }], 2);
          if (outcome.died) deaths += 1;
          const where = `${kind.name}, ${when} append ${append}`;
          faults.push(...outcome.faults.map((fault) => `${where}: ${fault}`));
        }
      }
    }
    expect(faults).to.deep.equal([]);
    // Which of the three makes an append is not known beforehand, so not every planned death happens.
    expect(deaths).to.be.greaterThan(0);
  });
});
