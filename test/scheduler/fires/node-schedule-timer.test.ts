import { expect } from 'chai';
import { nodeScheduleTimer } from '../../../scheduler/fires/node-schedule-timer.ts';
import { Signal } from '../../support/signals.ts';

const hour = 3_600_000;

describe("the scheduler's timer", () => {
  const realNow = Date.now;
  afterEach(() => {
    Date.now = realNow;
  });

  it('calls back at its instant, never before', async () => {
    const called = new Signal<number>();
    const at = Date.now() + 15;
    nodeScheduleTimer(at, () => called.send(Date.now()));
    expect(await called.wait()).to.be.at.least(at);
  });

  it('calls back asynchronously for a past instant', async () => {
    const called = new Signal();
    nodeScheduleTimer(Date.now() - hour, called.send);
    expect(called.values).to.have.lengthOf(0);
    await called.wait();
  });

  it('notices that a clock that was set back is right again', async () => {
    const called = new Signal();
    const looked = new Signal();
    const at = Date.now() + 15;
    nodeScheduleTimer(at, called.send);
    Date.now = () => {
      looked.send();
      return realNow() - 4_000;
    };
    await looked.wait();
    Date.now = realNow;
    await called.wait();
    expect(Date.now()).to.be.at.least(at);
  });

  it('does not call back after its cancellation, even if the clock was set back', async () => {
    const looked = new Signal();
    const cancel = nodeScheduleTimer(Date.now() + 15, () => expect.fail('called back'));
    Date.now = () => {
      looked.send();
      return realNow() - 4_000;
    };
    await looked.wait();
    cancel();
    Date.now = realNow;
    const later = new Signal();
    nodeScheduleTimer(Date.now() + 30, later.send);
    await later.wait();
  });
});
