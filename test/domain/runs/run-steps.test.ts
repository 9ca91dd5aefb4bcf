import { expect } from 'chai';
import type { RunEvent } from '../../../domain/events/catalogue.ts';
import { requireRun, runFold, type RunState } from '../../../domain/runs/run.ts';
import { endsOf, noSteps, withEnds } from '../../../domain/runs/run-steps.ts';
import { request, stepEnd } from '../../projections/recorded.ts';
import { given } from '../given.ts';
import { cpuMs } from '../../support/cpu-time.ts';

const names = (state: RunState): readonly string[] =>
  endsOf(requireRun(state).steps).map(({ step }) => step);

describe('the steps of a run', () => {
  it('are counted, in the order in which they ended', () => {
    const steps = withEnds(withEnds(noSteps, [stepEnd('a'), stepEnd('b')]), [stepEnd('c')]);
    expect(endsOf(steps).map(({ step }) => step)).to.deep.equal(['a', 'b', 'c']);
    expect(steps.count).to.equal(3);
    expect(withEnds(steps, [])).to.equal(steps);
    expect(endsOf(noSteps)).to.deep.equal([]);
  });

  it('of an earlier state do not change', () => {
    const before = given(runFold, [{ type: 'RunRequested', data: request() }]);
    const step = (name: string): RunEvent => ({ type: 'RunStepCompleted', data: stepEnd(name) });
    const place = { revision: 1, metadata: {} as never };
    const one = runFold.evolve(before, step('one'), place);
    const other = runFold.evolve(before, step('other'), place);
    expect([names(before), names(one), names(other)]).to.deep.equal([[], ['one'], ['other']]);
  });

  it('take constant time per item', async () => {
    const events = (count: number): readonly RunEvent[] => [
      { type: 'RunRequested', data: request() },
      ...Array.from({ length: count }, (_, index): RunEvent => ({
        type: 'RunStepCompleted',
        data: stepEnd(`each[${index}]`),
      })),
    ];
    // Copying the list with each item would move 1.25 billion references here, which takes seconds, not milliseconds.
    const many = events(50_000);
    const place = { revision: 1, metadata: { occurredAt: '2026-03-01T09:00:00.000Z' } as never };
    let state = runFold.initial;
    const spent = await cpuMs(() => {
      for (const event of many) state = runFold.evolve(state, event, place);
    });
    expect(names(state)).to.have.length(50_000);
    expect(spent).to.be.below(1000);
  });
});
