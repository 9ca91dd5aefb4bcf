import { expect } from 'chai';
import { createPositionWaiter } from '../../../projections/reading/position-waiter.ts';
import {
  ReadModelError,
  type Projection,
  type ReadModel,
} from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const runs = runsProjection as Projection;

describe('waiting for a position', () => {
  let clock: VirtualClock;
  let checkpoint: string | Error;
  let asked: number;
  let waiter: ReturnType<typeof createPositionWaiter>;

  beforeEach(() => {
    clock = new VirtualClock();
    checkpoint = '05';
    asked = 0;
    const readModel = {
      checkpoint: () => {
        asked += 1;
        return checkpoint instanceof Error
          ? Promise.reject(checkpoint)
          : Promise.resolve(checkpoint);
      },
    } as unknown as ReadModel;
    waiter = createPositionWaiter({ readModel, clock, pollMs: 5 });
  });

  it('ends at once if the view is known to be there, without asking again', async () => {
    expect(await waiter.passed(runs, '04', 1000)).to.deep.equal({ passed: true, position: '05' });
    expect(await waiter.passed(runs, '05', 1000)).to.deep.equal({ passed: true, position: '05' });
    expect(asked).to.equal(1);
    await clock.advance(5);
    expect(clock.pending).to.equal(0);
  });

  it('ends as soon as the stored checkpoint gets there', async () => {
    const waiting = waiter.passed(runs, '07', 1000);
    await clock.advance(20);
    checkpoint = '08';
    await clock.advance(5);
    expect(await waiting).to.deep.equal({ passed: true, position: '08' });
  });

  it('ends at once when the projector of this process notifies it', async () => {
    const waiting = waiter.passed(runs, '07', 1000);
    waiter.notify('statistics', '09');
    waiter.notify('runs', '06');
    waiter.notify('runs', '07');
    expect(await waiting).to.deep.equal({ passed: true, position: '07' });
    await clock.advance(5);
  });

  it('times out, and says where the view is', async () => {
    const waiting = waiter.passed(runs, '07', 2000);
    await clock.advance(2000);
    expect(await waiting).to.deep.equal({ passed: false, position: '05' });
    await clock.advance(5);
    expect(clock.pending).to.equal(0);
  });

  it('polls once for all waiters of a view', async () => {
    const all = Promise.all(['06', '07', '08'].map((at) => waiter.passed(runs, at, 100)));
    await clock.advance(10);
    expect(asked).to.be.lessThan(5);
    waiter.notify('runs', '07');
    await clock.advance(100);
    expect((await all).map(({ passed }) => passed)).to.deep.equal([true, true, false]);
  });

  it('waits for a read model that does not answer', async () => {
    checkpoint = new ReadModelError('UNAVAILABLE', 'it does not answer');
    const waiting = waiter.passed(runs, '05', 1000);
    await clock.advance(100);
    checkpoint = '05';
    await clock.advance(5);
    expect((await waiting).passed).to.equal(true);
  });
});
