import { expect } from 'chai';
import { FillingProgress } from '../../../projections/generations/filling-progress.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

describe('the remaining time of a fill', () => {
  const position = (n: number): string => String(n).padStart(16, '0');
  const counts = (handled: number) => ({
    version: 2,
    handled,
    leftOut: 0,
    looked: position(handled),
  });

  function begun(rate?: number): { clock: VirtualClock; progress: FillingProgress } {
    const clock = new VirtualClock();
    const progress = new FillingProgress(clock, rate);
    progress.begin(0);
    progress.setEnd(position(200), counts(0));
    return { clock, progress };
  }

  it('is estimated from what was done so far', async () => {
    const { clock, progress } = begun();
    await clock.advance(10_000);
    expect(progress.status(counts(100))).to.include({
      progress: 0.5,
      events_per_second: 10,
      seconds_left: 10,
    });
  });

  it('is estimated from its rate, also after a large batch and during the rest after it', async () => {
    const { clock, progress } = begun(2);
    await clock.advance(1_000);
    expect(progress.status(counts(100))).to.include({
      progress: 0.5,
      events_per_second: 2,
      seconds_left: 99,
    });
    await clock.advance(49_000);
    expect(progress.status(counts(100))).to.include({ events_per_second: 2, seconds_left: 50 });
  });
});
