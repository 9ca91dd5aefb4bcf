import { expect } from 'chai';
import { preferredWorker } from '../../../scheduler/runs/preferred-worker.ts';

describe('the preferred worker of a run', () => {
  const workers = ['host-1-a', 'host-1-b', 'host-2-c', 'host-2-d'];
  const runs = Array.from({ length: 4000 }, (_, n) => `run-${n}`);

  it('is the same for all processes, in any order of workers', () => {
    for (const run of runs.slice(0, 100)) {
      expect(preferredWorker(run, workers)).to.equal(preferredWorker(run, workers.toReversed()));
    }
    expect(preferredWorker('run', [])).to.equal(null);
    expect(preferredWorker('run', ['one'])).to.equal('one');
  });

  it('is each worker for its share of runs', () => {
    for (const worker of workers) {
      const share =
        runs.filter((run) => preferredWorker(run, workers) === worker).length / runs.length;
      expect(share, worker).to.be.within(0.2, 0.3);
    }
  });

  it('stays the same when another worker leaves', () => {
    const left = workers.slice(1);
    for (const run of runs) {
      const before = preferredWorker(run, workers);
      if (before !== workers[0]) expect(preferredWorker(run, left)).to.equal(before);
    }
  });
});
