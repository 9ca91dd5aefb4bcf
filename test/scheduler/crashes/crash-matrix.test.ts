import { expect } from 'chai';
import { kinds, type Kind } from './crash-kinds.ts';
import { everyCrash, matrixTable, someOf, type MadeCrash } from './crash-matrix.ts';
import { crash, type Outcome } from './crash-scenario.ts';
import { longVersions } from '../../support/left-out.ts';

/** `SVC_TEST_LONG=1`: crashes at every append of every kind of task, not just once at each combination of event types. */
const long = longVersions();

describe('a process that dies between a due time and the end of its run', function () {
  this.timeout(long ? 1_200_000 : 60_000);
  const quiet = new Map<Kind, Outcome>();
  const made: MadeCrash[] = [];

  before(async () => {
    for (const kind of kinds) quiet.set(kind, await crash(kind, []));
  });

  after(() => {
    if (process.env['SVC_TEST_TABLE'] === '1') console.log(matrixTable(made));
  });

  it('causes no faults while it lives', () => {
    for (const [{ name }, { faults, died }] of quiet) {
      expect({ name, faults, died }).to.deep.equal({ name, faults: [], died: false });
    }
  });

  for (const when of ['before', 'after'] as const) {
    it(`${when} an append, neither loses nor duplicates a run, whatever the append and the kind of task`, async () => {
      const all = everyCrash(quiet).filter(({ point }) => point.when === when);
      const faults: string[] = [];
      for (const planned of long ? all : someOf(all)) {
        const outcome = await crash(planned.kind, [planned.point]);
        made.push({ ...planned, outcome });
        const where = `${planned.kind.name}, ${when} append ${planned.point.append} (${planned.append})`;
        if (!outcome.died) faults.push(`${where}: no process died`);
        faults.push(...outcome.faults.map((fault) => `${where}: ${fault}`));
      }
      expect(faults).to.deep.equal([]);
    });
  }

  it('and whose successor dies too, neither loses nor duplicates a run', async () => {
    const faults: string[] = [];
    let deaths = 0;
    for (const [index, kind] of kinds.entries()) {
      // The points vary from kind to kind, because all combinations would be too many.
      for (let turn = 0; turn < (long ? 12 : Number(index % 4 === 0)); turn += 1) {
        const points = [3 + ((turn + index) % 5), 1 + ((turn * 5 + index) % 7)].map(
          (append, at) => ({ append, when: (turn + at) % 2 === 0 ? 'before' : 'after' }) as const,
        );
        const outcome = await crash(kind, points);
        if (outcome.died) deaths += 1;
        const where = `${kind.name}, at ${JSON.stringify(points)}`;
        faults.push(...outcome.faults.map((fault) => `${where}: ${fault}`));
      }
    }
    expect(faults).to.deep.equal([]);
    expect(deaths).to.be.greaterThan(0);
  });
});
