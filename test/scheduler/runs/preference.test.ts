import { expect } from 'chai';
import { prefers } from '../../../scheduler/runs/preference.ts';

describe('the preferred worker of a run', () => {
  const workers = ['host-1-a', 'host-1-b', 'host-2-c', 'host-2-d'];
  const runs = Array.from({ length: 4000 }, (_, n) => `run-${n}`);

  it('is the same for all processes, in any order of workers', () => {
    for (const run of runs.slice(0, 100)) {
      expect(prefers(run, workers)).to.equal(prefers(run, workers.toReversed()));
    }
    expect(prefers('run', [])).to.equal(null);
    expect(prefers('run', ['one'])).to.equal('one');
  });

  it('is each worker for its share of runs', () => {
    for (const worker of workers) {
      const share = runs.filter((run) => prefers(run, workers) === worker).length / runs.length;
      expect(share, worker).to.be.within(0.2, 0.3);
    }
  });

  it('stays the same when another worker leaves', () => {
    const left = workers.slice(1);
    for (const run of runs) {
      const before = prefers(run, workers);
      if (before !== workers[0]) expect(prefers(run, left)).to.equal(before);
    }
  });
});
