import { expect } from 'chai';
import { settle, VirtualClock } from './virtual-clock.ts';

const minute = 60_000;

describe('the virtual clock', () => {
  it('fires timers in order, and those for one instant in the order of their creation', async () => {
    const clock = new VirtualClock(0);
    const fired: string[] = [];
    clock.at(20, () => fired.push('late'));
    clock.at(10, () => fired.push('early, first set'));
    clock.at(10, () => fired.push('early, then set'));
    await clock.advanceTo(20);
    expect(fired).to.deep.equal(['early, first set', 'early, then set', 'late']);
  });

  it('shows a callback the instant it was set for', async () => {
    const clock = new VirtualClock(0);
    const seen: number[] = [];
    clock.at(7, () => seen.push(clock.now()));
    await clock.advance(minute);
    expect(seen).to.deep.equal([7]);
    expect(clock.now()).to.equal(minute);
  });

  it('lets asynchronous reactions set timers that fall due in the same advance', async () => {
    const clock = new VirtualClock(0);
    let rounds = 0;
    const loop = (async () => {
      while (rounds < 100) {
        await clock.sleep(minute);
        rounds += 1;
      }
    })();
    await clock.advance(100 * minute);
    await loop;
    expect(rounds).to.equal(100);
  });

  it('does not call back within the call, even for a past instant', async () => {
    const clock = new VirtualClock(1_000);
    let fired = false;
    clock.at(500, () => (fired = true));
    expect(fired).to.equal(false);
    await settle();
    expect(fired).to.equal(true);
  });

  it('never fires cancelled timers, and counts pending ones', async () => {
    const clock = new VirtualClock(0);
    const cancel = clock.at(5, () => expect.fail('fired'));
    clock.at(9, () => undefined);
    expect(clock.pending).to.equal(2);
    cancel();
    cancel();
    expect(clock.pending).to.equal(1);
    expect(clock.next).to.equal(9);
    await clock.advanceTo(10);
    expect(clock.pending).to.equal(0);
  });

  it('rejects a sleep with its abort reason, and leaves no timer', async () => {
    const clock = new VirtualClock(0);
    const stop = new AbortController();
    const sleep = clock.sleep(minute, stop.signal);
    stop.abort(new Error('stopping'));
    const outcome = await sleep.catch((error: unknown) => error);
    expect(outcome).to.have.property('message', 'stopping');
    expect(clock.pending).to.equal(0);
  });

  it("rejects an advance with a callback's error", async () => {
    const clock = new VirtualClock(0);
    clock.at(1, () => {
      throw new Error('broken callback');
    });
    const outcome = await clock.advance(2).catch((error: unknown) => error);
    expect(outcome).to.have.property('message', 'broken callback');
  });

  it('skips the time between when it jumps, and fires the timers late', async () => {
    const clock = new VirtualClock(0);
    const seen: number[] = [];
    clock.at(minute, () => seen.push(clock.now()));
    clock.jumpTo(60 * minute);
    await settle();
    expect(seen).to.deep.equal([60 * minute]);
  });

  it('keeps the remaining time of a duration when the clock is set', async () => {
    const clock = new VirtualClock(60 * minute);
    const begun = clock.steady();
    const seen: number[] = [];
    clock.after(minute, () => seen.push(clock.steady() - begun));
    await clock.advance(minute / 2);
    clock.setTo(0);
    expect(clock.steady() - begun).to.equal(minute / 2);
    await clock.advance(minute);
    clock.setTo(120 * minute);
    expect(seen).to.deep.equal([minute]);
  });

  it('does not fire a timer early after the clock was set back', async () => {
    const clock = new VirtualClock(minute);
    clock.at(minute, () => expect.fail('fired early'));
    clock.jumpTo(0);
    await settle();
    expect(clock.pending).to.equal(1);
    expect(() => new VirtualClock('yesterday')).to.throw(RangeError);
  });
});
