import { expect } from 'chai';
import { SystemClock } from '../../app/clock.ts';
import { leavesNothingOpen } from '../support/leaks.ts';
import { Signal } from '../support/signals.ts';

const day = 86_400_000;

describe('the system clock', () => {
  leavesNothingOpen();
  const clock = new SystemClock();

  it('calls back no earlier than the instant it was given', async () => {
    const called = new Signal<number>();
    const instant = clock.now() + 15;
    clock.at(instant, () => called.send(clock.now()));
    expect(await called.wait()).to.be.at.least(instant);
  });

  it('calls back for a past instant, but not within the call', async () => {
    const called = new Signal();
    clock.at(clock.now() - day, called.send);
    expect(called.values).to.have.lengthOf(0);
    await called.wait();
  });

  it('waits for an instant beyond the maximum of one timer', async () => {
    const called = new Signal();
    const cancel = clock.at(clock.now() + 100 * day, called.send);
    const soon = new Signal();
    clock.at(clock.now() + 5, soon.send);
    await soon.wait();
    expect(called.values).to.have.lengthOf(0);
    cancel();
  });

  it('calls back after a duration, and no earlier, however the clock is set meanwhile', async () => {
    const realNow = Date.now;
    const called = new Signal<number>();
    const begun = clock.steady();
    clock.after(15, () => called.send(clock.steady()));
    try {
      Date.now = () => realNow() + day;
      await new Promise((resolve) => setImmediate(resolve));
      Date.now = () => realNow() - day;
      expect(await called.wait()).to.be.at.least(begun + 15);
    } finally {
      Date.now = realNow;
    }
  });

  it('lets the process end while a background timer waits', () => {
    const before = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    const cancel = clock.at(clock.now() + day, () => undefined, { background: true });
    const during = process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
    expect(during).to.equal(before);
    cancel();
  });

  it('sleeps for the given time', async () => {
    const start = performance.now();
    await clock.sleep(10);
    expect(performance.now() - start).to.be.at.least(10);
  });

  it('rejects a sleep with the reason of its abort, before or during it', async () => {
    const stop = new AbortController();
    const sleep = clock.sleep(day, stop.signal).catch((error: unknown) => error);
    stop.abort(new Error('stopping'));
    expect(await sleep).to.have.property('message', 'stopping');
    const late = await clock.sleep(day, stop.signal).catch((error: unknown) => error);
    expect(late).to.have.property('message', 'stopping');
  });
});
