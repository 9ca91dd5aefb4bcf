import { expect } from 'chai';
import { kinds, type Kind } from './crash-kinds.ts';
import { everyCrash, matrixTable, someOf, type MadeCrash } from './crash-matrix.ts';
import { crash, type Outcome } from './crash-scenario.ts';

/** `SVC_TEST_LONG=1`: every append of every kind of task; else each sort of append once. */
const long = process.env['SVC_TEST_LONG'] === '1';

describe('a process that dies between a due time and the end of its run', function () {
  this.timeout(long ? 1_200_000 : 60_000);
  const quiet = new Map<Kind, Outcome>();
  const made: MadeCrash[] = [];

  before(async () => {
    for (const kind of kinds) quiet.set(kind, await crash(kind, null));
  });

  after(() => {
    if (process.env['SVC_TEST_TABLE'] === '1') console.log(matrixTable(made));
  });

  it('is what all goes well without', () => {
    for (const [{ name }, { faults, died }] of quiet) {
      expect({ name, faults, died }).to.deep.equal({ name, faults: [], died: false });
    }
  });

  for (const when of ['before', 'after'] as const) {
    it(`${when} an append, loses and doubles nothing, whatever the append and the kind of task`, async () => {
      const all = everyCrash(quiet).filter(({ point }) => point.when === when);
      const faults: string[] = [];
      for (const planned of long ? all : someOf(all)) {
        const outcome = await crash(planned.kind, planned.point);
        made.push({ ...planned, outcome });
        const where = `${planned.kind.name}, ${when} append ${planned.point.append} (${planned.append})`;
        if (!outcome.died) faults.push(`${where}: nothing died`);
        faults.push(...outcome.faults.map((fault) => `${where}: ${fault}`));
      }
      expect(faults).to.deep.equal([]);
    });
  }
});
