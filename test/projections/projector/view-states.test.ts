import { expect } from 'chai';
import {
  nextState,
  viewStates,
  viewTransitions,
  type ViewState,
} from '../../../projections/projector/view-states.ts';

describe('the states of a view', () => {
  const following = (state: ViewState): readonly ViewState[] =>
    Object.values(viewTransitions[state]);

  it('can all be reached from the first, except stopped', () => {
    const reached = new Set<ViewState>(['opening']);
    for (const state of reached) for (const next of following(state)) reached.add(next);
    expect([...reached, 'stopped'].sort()).to.deep.equal([...viewStates].sort());
  });

  it('all lead back to following, except stopped', () => {
    for (const start of viewStates.filter((state) => state !== 'stopped')) {
      const reached = new Set<ViewState>([start]);
      for (const state of reached) for (const next of following(state)) reached.add(next);
      expect([...reached], start).to.include('following');
    }
  });

  it('follow each other by the table, and by nothing else', () => {
    expect(nextState('ready', 'released')).to.equal('switching');
    expect(() => nextState('following', 'filled')).to.throw('a view that is following cannot be');
  });
});
