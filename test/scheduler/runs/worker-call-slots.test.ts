import { expect } from 'chai';
import { CallSlots } from '../../../scheduler/call-slots.ts';
import { WorkerWorld } from './worker-world.ts';

describe('a worker beside direct tool calls', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });
  afterEach(async () => {
    await world.close();
  });

  it('gives its only slot to a run after each direct tool call', async () => {
    await world.task('t', ['hold:a']);
    const calls = new CallSlots(1, world.clock);
    const { worker } = await world.start('one', { slots: 1, calls });
    const waited = new AbortController().signal;
    const giveBack = await calls.take(waited);
    await world.request('t');
    const next = calls.take(waited);
    await world.clock.advance(1_000);
    expect([worker.active, worker.slotUse.calls]).to.deep.equal([0, 1]);
    giveBack?.();
    await world.clock.advance(1_000);
    expect([worker.active, calls.taken]).to.deep.equal([1, 0]);
    await world.let('one', world.effects[0]?.run ?? '', 'a');
    expect(await next).to.be.a('function');
  });
});
