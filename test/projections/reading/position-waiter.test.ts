import { expect } from 'chai';
import { createPositionWaiter } from '../../../projections/reading/position-waiter.ts';
import {
  ReadModelError,
  type Projection,
  type ReadModel,
} from '../../../projections/read-model.ts';
import { runsProjection } from '../../../projections/views/runs.ts';
import { collectingLines } from '../../support/reporting-to.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const runs = runsProjection as Projection;

describe('waiting for a position', () => {
  let clock: VirtualClock;
  let checkpoint: string | Error;
  let asked: number;
  let lines: string[];
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
    lines = [];
    const telemetry = collectingLines(lines, () => clock.steady());
    waiter = createPositionWaiter({ readModel, clock, telemetry, pollMs: 5 });
  });

  it('ends at once if the view is known to have reached it, without another read', async () => {
    expect(await waiter.passed(runs, '04', 1000)).to.deep.equal({ passed: true, position: '05' });
    expect(await waiter.passed(runs, '05', 1000)).to.deep.equal({ passed: true, position: '05' });
    expect(asked).to.equal(1);
    await clock.advance(5);
    expect(clock.pending).to.equal(0);
  });

  it('ends as soon as the stored checkpoint reaches it', async () => {
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

  it('times out, and names the position of the view', async () => {
    const waiting = waiter.passed(runs, '07', 2000);
    await clock.advance(2000);
    expect(await waiting).to.deep.equal({ passed: false, position: '05' });
    await clock.advance(5);
    expect(clock.pending).to.equal(0);
  });

  it('is not used up by a machine that stood still', async () => {
    const waiting = waiter.passed(runs, '07', 2000);
    clock.jumpTo(clock.now() + 5000);
    await clock.advance(0);
    checkpoint = '07';
    await clock.advance(5);
    expect((await waiting).passed).to.equal(true);
  });

  it('polls once for all waiters of a view', async () => {
    const all = Promise.all(['06', '07', '08'].map((at) => waiter.passed(runs, at, 100)));
    await clock.advance(10);
    expect(asked).to.be.lessThan(5);
    waiter.notify('runs', '07');
    await clock.advance(100);
    expect((await all).map(({ passed }) => passed)).to.deep.equal([true, true, false]);
  });

  it('waits for a read model that does not respond', async () => {
    checkpoint = new ReadModelError('UNAVAILABLE', 'it does not respond');
    const waiting = waiter.passed(runs, '05', 1000);
    await clock.advance(450);
    // It is asked rarely, as it is most likely overloaded or unavailable.
    expect(asked).to.equal(5);
    expect(lines).to.deep.equal(['views unavailable: it does not respond']);
    checkpoint = '05';
    await clock.advance(50);
    expect((await waiting).passed).to.equal(true);
    expect(lines.slice(1)).to.deep.equal(['views available again']);
  });
});
