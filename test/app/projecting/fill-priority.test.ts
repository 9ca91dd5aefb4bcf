import { expect } from 'chai';
import { yieldWhileFilling } from '../../../app/projecting/fill-priority.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('the priority of a thread that fills views', () => {
  const world = () => {
    const calls: string[] = [];
    const clock = new VirtualClock();
    const priority = { lower: () => calls.push('lower'), restore: () => calls.push('restore') };
    return { calls, clock, begin: yieldWhileFilling(priority, clock) };
  };

  it('is lowered after a second, and restored when the last fill ends', async () => {
    const { calls, clock, begin } = world();
    const endFirst = begin();
    await clock.advance(1500);
    const endSecond = begin();
    await clock.advance(1500);
    expect(calls).to.deep.equal(['lower']);
    endFirst();
    expect(calls).to.deep.equal(['lower']);
    endSecond();
    expect(calls).to.deep.equal(['lower', 'restore']);
    expect(clock.pending).to.equal(0);
  });

  it('stays as it is during a short fill', async () => {
    const { calls, clock, begin } = world();
    const end = begin();
    await clock.advance(900);
    end();
    await clock.advance(5000);
    expect(calls).to.deep.equal([]);
    expect(clock.pending).to.equal(0);
  });
});
