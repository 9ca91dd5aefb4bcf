import { expect } from 'chai';
import { CallSlots } from '../../scheduler/call-slots.ts';
import { settle, VirtualClock } from '../support/virtual-clock.ts';

const waited = new AbortController().signal;

describe('slots for direct tool calls', () => {
  it('are half of the slots of the process, and at least one', () => {
    expect(
      [64, 3, 2, 1].map((size) => new CallSlots(size, new VirtualClock(0)).limit),
    ).to.deep.equal([32, 1, 1, 1]);
  });

  it('are shared with runs', async () => {
    const slots = new CallSlots(4, new VirtualClock(0));
    let busy = 3;
    slots.shareWith({ runsHold: () => busy, slotReleased: () => {} });
    const first = await slots.take(waited);
    expect(first).to.be.a('function');
    let second: unknown = 'waits';
    void slots.take(waited).then((found) => (second = found));
    await settle();
    expect([second, slots.taken]).to.deep.equal(['waits', 1]);
    busy = 2;
    slots.offer();
    await settle();
    expect(second).to.be.a('function');
    expect(slots.taken).to.equal(2);
  });

  it('are released once, to the longest waiting call, and then to runs', async () => {
    const slots = new CallSlots(2, new VirtualClock(0));
    let freed = 0;
    slots.shareWith({ runsHold: () => 0, slotReleased: () => (freed += 1) });
    const giveBack = await slots.take(waited);
    const order: string[] = [];
    for (const name of ['a', 'b']) void slots.take(waited).then(() => order.push(name));
    giveBack?.();
    giveBack?.();
    await settle();
    expect([order, slots.taken, freed]).to.deep.equal([['a'], 1, 1]);
  });

  it('go to a run after each call when there is a single slot', async () => {
    const slots = new CallSlots(1, new VirtualClock(0));
    let busy = 0;
    const slotReleased = (): void => {
      busy = 1;
      slots.offer();
    };
    slots.shareWith({ runsHold: () => busy, slotReleased });
    const giveBack = await slots.take(waited);
    let second: unknown = 'waits';
    void slots.take(waited).then((found) => (second = found));
    giveBack?.();
    await settle();
    expect([second, slots.taken]).to.deep.equal(['waits', 0]);
    busy = 0;
    slots.offer();
    await settle();
    expect([typeof second, slots.taken]).to.deep.equal(['function', 1]);
  });

  it('are awaited for some seconds, while the caller is connected', async () => {
    const clock = new VirtualClock(0);
    const slots = new CallSlots(1, clock);
    const giveBack = await slots.take(waited);
    const late = slots.take(waited);
    const gone = new AbortController();
    const left = slots.take(gone.signal);
    gone.abort();
    expect(await left).to.equal(null);
    await clock.advance(5_000);
    expect(await late).to.equal(null);
    giveBack?.();
    expect(await slots.take(waited)).to.be.a('function');
  });

  it('are awaited by at most a hundred calls', async () => {
    const slots = new CallSlots(1, new VirtualClock(0));
    await slots.take(waited);
    for (let n = 0; n < 100; n += 1) void slots.take(new AbortController().signal);
    expect(await slots.take(waited)).to.equal(null);
  });
});
