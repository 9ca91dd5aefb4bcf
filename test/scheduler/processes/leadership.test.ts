import { expect } from 'chai';
import type { Lease } from '../../../scheduler/coordination.ts';
import { silent } from '../../../observability/telemetry.ts';
import { Leadership } from '../../../scheduler/processes/leadership.ts';
import { World } from '../scheduler-world.ts';

const lease = 3000;

describe('leadership', () => {
  let world: World;
  let running: { readonly stop: AbortController; readonly ended: Promise<void> }[];

  beforeEach(async () => {
    world = await World.open();
    running = [];
  });

  const end = async (): Promise<void> => {
    for (const { stop } of running) stop.abort();
    await Promise.all(running.map(({ ended }) => ended));
    running = [];
  };

  afterEach(async () => {
    await end();
    await world.close();
  });

  const run = (owner: string): Leadership => {
    const { coordination, clock } = world;
    const name = 'scheduler';
    const leadership = new Leadership({
      name,
      owner,
      lease,
      coordination,
      clock,
      telemetry: silent,
    });
    const stop = new AbortController();
    running.push({ stop, ended: leadership.run(stop.signal) });
    return leadership;
  };

  it('is held by one process, and stays with it as long as it renews the lease', async () => {
    const one = run('one');
    await world.clock.advance(1);
    const two = run('two');
    for (let n = 0; n < 20; n += 1) {
      await world.clock.advance(777);
      expect([one.leads, two.leads]).to.deep.equal([true, false]);
    }
  });

  it('lets work run as long as the same lease is held', async () => {
    const one = run('one');
    await world.clock.advance(1);
    const said: string[] = [];
    const stop = new AbortController();
    const work = one.whileLeading(stop.signal, async (ending, fence) => {
      said.push(`begun with ${fence === one.fence ? 'its' : 'another'} fence`);
      await new Promise((resolve) => ending.signal.addEventListener('abort', resolve));
      said.push('ended');
    });
    await world.clock.advance(5 * lease);
    expect(said).to.deep.equal(['begun with its fence']);
    world.coordination.acquire = async () => null;
    await world.clock.advance(lease);
    await work;
    expect(said).to.deep.equal(['begun with its fence', 'ended']);
  });

  it("aborts work that begins after a loss, and rethrows the work's error", async () => {
    const one = run('one');
    await world.clock.advance(1);
    const { signal } = new AbortController();
    const seen: AbortSignal[] = [];
    const failing = one.whileLeading(signal, async (ending) => {
      seen.push(ending.signal);
      throw new Error('the work failed');
    });
    expect(await failing.catch((error: Error) => error.message)).to.equal('the work failed');
    expect(seen.map(({ aborted }) => aborted)).to.deep.equal([true]);
    await end();
    await one.whileLeading(signal, async (ending) => {
      expect(ending.signal.aborted).to.equal(true);
      seen.push(ending.signal);
    });
    expect(seen).to.have.length(2);
  });

  it('reports each change until the listener is removed', async () => {
    const one = run('one');
    const changes: boolean[] = [];
    const listener = (): void => void changes.push(one.leads);
    one.onChange(listener);
    await world.clock.advance(1000);
    const acquire = world.coordination.acquire.bind(world.coordination);
    world.coordination.acquire = () => Promise.resolve<Lease | null>(null);
    await world.clock.advance(1000);
    world.coordination.acquire = acquire;
    await world.clock.advance(1000);
    one.offChange(listener);
    await end();
    expect(changes).to.deep.equal([true, false, true]);
  });

  it('ends by itself when it cannot be renewed', async () => {
    const one = run('one');
    await world.clock.advance(1);
    world.coordination.acquire = () => Promise.reject(new Error('away'));
    await world.clock.advance(lease);
    expect(one.leads).to.equal(false);
  });

  it('is reported again after an unnoticed expiry, even with the same lease', async () => {
    const one = run('one');
    await world.clock.advance(1);
    const { fence } = one;
    // The machine slept.
    world.clock.setTo(world.clock.now() + 2 * lease);
    expect(one.leads).to.equal(false);
    const { signal } = new AbortController();
    const reported: string[] = [];
    void one.untilLeading(signal).then(() => reported.push('leads'));
    await world.clock.advance(lease);
    expect([one.leads, one.fence]).to.deep.equal([true, fence]);
    expect(reported).to.deep.equal(['leads']);
  });

  it('passes to the next process at once when it is released, with a larger fence', async () => {
    const one = run('one');
    await world.clock.advance(1000);
    const { fence } = one;
    await end();
    expect(one.leads).to.equal(false);
    const two = run('two');
    await world.clock.advance(1);
    expect(two.leads).to.equal(true);
    expect(two.fence).to.be.above(fence);
  });
});
