import { expect } from 'chai';
import { stepTimes, type TimedRun } from '../../../domain/runs/step-times.ts';

const at = (milliseconds: number): string =>
  new Date(1_800_000_000_000 + milliseconds).toISOString();

/** A run whose steps took the given milliseconds. */
function run(took: Readonly<Record<string, number>>, reused = 0): TimedRun {
  const steps = Object.entries(took).map(([step, milliseconds]) => ({
    step,
    status: 'succeeded' as const,
    started_at: at(0),
    finished_at: at(milliseconds),
  }));
  return { steps, reused };
}

const twenty = Array.from({ length: 20 }, (_, n) => run({ load: 100 + n * 10 }));

describe('the times of the steps of a run', () => {
  it('are compared with the median and the 95th percentile of earlier runs', () => {
    const [load] = stepTimes(run({ load: 280 }), twenty);
    expect(load).to.deep.equal({
      step: 'load',
      took_seconds: 0.28,
      measured: 20,
      p50_seconds: 0.19,
      p95_seconds: 0.28,
      slow: false,
    });
  });

  it('mark a step as slow that took half as long again, and a tenth of a second more', () => {
    const isSlow = (took: number, before = twenty) =>
      stepTimes(run({ load: took }), before)[0]?.slow;
    expect(isSlow(419)).to.equal(false);
    expect(isSlow(420)).to.equal(true);
    const quick = Array.from({ length: 20 }, () => run({ load: 2 }));
    expect(isSlow(101, quick)).to.equal(false);
    expect(isSlow(102, quick)).to.equal(true);
  });

  it('say nothing about a step with too few measurements', () => {
    const [load] = stepTimes(run({ load: 9000 }), twenty.slice(0, 4));
    expect(load).to.deep.include({
      measured: 4,
      p50_seconds: null,
      p95_seconds: null,
      slow: false,
    });
  });

  it('leave out results that were reused from another run', () => {
    const [load, send] = stepTimes(run({ load: 9000, send: 1 }, 1), twenty);
    expect(load).to.deep.include({ step: 'load', took_seconds: null, slow: false });
    expect(send).to.deep.include({ step: 'send', took_seconds: 0.001 });
    const before = Array.from({ length: 9 }, () => run({ load: 9000 }, 1));
    expect(stepTimes(run({ load: 100 }), before)[0]?.measured).to.equal(0);
  });

  it('measure the items of a step together, and name steps that have not ended', () => {
    const before = Array.from({ length: 3 }, () =>
      run({ 'each[0]': 10, 'each[1]': 20, each: 31, last: 5 }),
    );
    const times = stepTimes(run({ 'each[7]': 500 }), before);
    expect(times[0]).to.deep.include({
      step: 'each[7]',
      measured: 6,
      p95_seconds: 0.02,
      slow: true,
    });
    expect(times.slice(1)).to.deep.equal([
      {
        step: 'each',
        took_seconds: null,
        measured: 3,
        p50_seconds: null,
        p95_seconds: null,
        slow: false,
      },
      {
        step: 'last',
        took_seconds: null,
        measured: 3,
        p50_seconds: null,
        p95_seconds: null,
        slow: false,
      },
    ]);
  });
});
