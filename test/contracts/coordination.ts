import { expect } from 'chai';
import { CoordinationError, type Coordination, type Lease } from '../../scheduler/coordination.ts';
import { describeJobLeases } from './job-leases.ts';

/** What an adapter's test provides to the contract suite: one store for one test. */
export interface CoordinationHarness {
  readonly coordination: Coordination;
  /**
   * Another adapter over the same store, as another process would open it. The harness closes it.
   */
  another(): Promise<Coordination>;
  /** Advances the store's own clock by milliseconds; a negative number sets it back. */
  advance(milliseconds: number): Promise<void>;
  close(): Promise<void>;
}

/** Milliseconds: enough for a few calls to a real server, and short enough to wait on a real clock. */
const TTL = 3_000;

let names = 0;

/** A name that no other test, and no earlier run on the same server, has used. */
function unique(what: string): string {
  names += 1;
  return `${what}-${String(process.pid)}-${String(Date.now())}-${String(names)}`;
}

/**
 * What every coordination store must do, whatever its engine.
 *
 * @param name stands in the titles: "the embedded coordination"
 * @param open called before each test
 */
export function describeCoordinationContract(
  name: string,
  open: () => Promise<CoordinationHarness>,
): void {
  describe(name, () => {
    let current: CoordinationHarness | undefined;
    const harness = (): CoordinationHarness => {
      if (current === undefined) throw new Error('There is a harness only during a test');
      return current;
    };
    beforeEach(async () => {
      current = await open();
    });
    afterEach(async () => {
      await current?.close();
      current = undefined;
    });

    describeLeases(harness);
    describeLives(harness);
    describeCounters(harness);
    describeMemory(harness);
    describeJobLeases(harness);

    it('responds to a ping, and rejects one once closed', async () => {
      const coordination = await harness().another();
      await coordination.ping();
      await coordination.close();
      const outcome = await coordination.ping().catch((error: unknown) => error);
      expect(outcome).to.be.instanceOf(CoordinationError);
      await coordination.close();
    });
  });
}

function describeLeases(harness: () => CoordinationHarness): void {
  describe('a lease', () => {
    it('goes to the first owner that asks, and to no other while it lasts', async () => {
      const { coordination } = harness();
      const lease = unique('lease');
      const first = await taken(coordination, lease, 'one');
      expect(first.remaining).to.be.within(1, TTL);
      expect(await coordination.acquire(lease, 'two', TTL)).to.equal(null);
      expect(await (await harness().another()).acquire(lease, 'two', TTL)).to.equal(null);
    });

    it('is independent of leases with other names', async () => {
      const { coordination } = harness();
      await taken(coordination, unique('lease'), 'one');
      await taken(coordination, unique('lease'), 'two');
    });

    it('keeps its fence when its owner renews it', async () => {
      const { coordination, advance } = harness();
      const lease = unique('lease');
      const first = await taken(coordination, lease, 'one');
      await advance(TTL / 2);
      const renewed = await taken(coordination, lease, 'one');
      expect(renewed.fence).to.equal(first.fence);
      expect(renewed.remaining).to.be.within(TTL / 2 + 1, TTL);
      await advance(TTL / 2 + 100);
      expect(await coordination.acquire(lease, 'two', TTL)).to.equal(null);
    });

    it('may be renewed for a longer or a shorter time', async () => {
      const { coordination, advance } = harness();
      const lease = unique('lease');
      await taken(coordination, lease, 'one', 60_000);
      await taken(coordination, lease, 'one', 500);
      await advance(501);
      await taken(coordination, lease, 'two');
    });

    it('goes to another owner after it expires, with a larger fence', async () => {
      const { coordination, advance } = harness();
      const lease = unique('lease');
      const first = await taken(coordination, lease, 'one');
      await advance(TTL + 1);
      const second = await taken(await harness().another(), lease, 'two');
      expect(second.fence).to.be.greaterThan(first.fence);
      expect(await coordination.acquire(lease, 'one', TTL)).to.equal(null);
    });

    it('goes to another owner as soon as it is released, with a larger fence', async () => {
      const { coordination } = harness();
      const lease = unique('lease');
      const first = await taken(coordination, lease, 'one');
      await coordination.release(lease, 'one');
      const second = await taken(coordination, lease, 'two');
      expect(second.fence).to.be.greaterThan(first.fence);
      await coordination.release(lease, 'two');
      const third = await taken(await harness().another(), lease, 'one');
      expect(third.fence).to.be.greaterThan(second.fence);
    });

    it('expires on time, not an hour later, when the clock is set back by an hour', async () => {
      const { coordination, advance } = harness();
      const lease = unique('lease');
      const first = await taken(coordination, lease, 'one');
      await advance(-3_600_000);
      const second = await taken(coordination, lease, 'two');
      expect(second.fence).to.be.greaterThan(first.fence);
      expect(await coordination.acquire(lease, 'one', TTL)).to.equal(null);
    });

    it('stays with its owner that renews it after the clock was set back', async () => {
      const { coordination, advance } = harness();
      const lease = unique('lease');
      const first = await taken(coordination, lease, 'one');
      await advance(-3_600_000);
      expect((await taken(coordination, lease, 'one')).fence).to.be.at.least(first.fence);
      expect(await coordination.acquire(lease, 'two', TTL)).to.equal(null);
    });

    it('never returns to its old owner with a smaller fence', async () => {
      const { coordination, advance } = harness();
      const lease = unique('lease');
      const first = await taken(coordination, lease, 'one');
      await advance(TTL + 1);
      const late = await taken(coordination, lease, 'one');
      expect(late.fence).to.be.at.least(first.fence);
      await coordination.release(lease, 'one');
      const again = await taken(coordination, lease, 'one');
      expect(again.fence).to.be.at.least(late.fence);
    });

    it('stays when another owner, or none, releases it', async () => {
      const { coordination } = harness();
      const lease = unique('lease');
      await coordination.release(lease, 'one');
      const first = await taken(coordination, lease, 'one');
      await coordination.release(lease, 'two');
      expect(await coordination.acquire(lease, 'two', TTL)).to.equal(null);
      expect((await taken(coordination, lease, 'one')).fence).to.equal(first.fence);
    });

    it('goes to exactly one of many concurrent callers', async () => {
      const { coordination, advance } = harness();
      const other = await harness().another();
      const lease = unique('lease');
      let fence = 0;
      for (let round = 0; round < 3; round += 1) {
        const asked = Array.from({ length: 10 }, (_, i) =>
          (i % 2 === 0 ? coordination : other).acquire(
            lease,
            `owner-${String(round)}-${String(i)}`,
            500,
          ),
        );
        const got = (await Promise.all(asked)).filter((one) => one !== null);
        expect(got).to.have.length(1);
        expect(got[0]?.fence).to.be.greaterThan(fence);
        fence = got[0]?.fence ?? 0;
        await advance(501);
      }
    });
  });
}

function describeLives(harness: () => CoordinationHarness): void {
  describe('a heartbeat', () => {
    it('shows a process as alive, with its self-description', async () => {
      const { coordination } = harness();
      const id = unique('worker');
      await coordination.heartbeat(id, { roles: ['worker'], 'a.b': { $c: null } }, TTL);
      const seen = await member(await harness().another(), id);
      expect(seen?.about).to.deep.equal({ roles: ['worker'], 'a.b': { $c: null } });
      expect(seen?.remaining).to.be.within(1, TTL);
    });

    it('replaces the previous one, and its time starts again', async () => {
      const { coordination, advance } = harness();
      const id = unique('worker');
      await coordination.heartbeat(id, { slots: 1 }, TTL);
      await advance(TTL / 2);
      await coordination.heartbeat(id, { slots: 2 }, TTL);
      await advance(TTL / 2 + 100);
      expect((await member(coordination, id))?.about).to.deep.equal({ slots: 2 });
    });

    it('expires by itself', async () => {
      const { coordination, advance } = harness();
      const id = unique('worker');
      await coordination.heartbeat(id, {}, TTL);
      await advance(TTL + 1);
      expect(await member(coordination, id)).to.equal(undefined);
      await coordination.heartbeat(id, {}, TTL);
      expect(await member(coordination, id)).to.not.equal(undefined);
    });

    it('does not outlast its end when the clock is set back by an hour', async () => {
      const { coordination, advance } = harness();
      const [gone, here] = [unique('worker'), unique('worker')];
      for (const id of [gone, here]) await coordination.heartbeat(id, {}, TTL);
      await advance(-3_600_000);
      await coordination.heartbeat(here, {}, TTL);
      expect(await member(coordination, gone)).to.equal(undefined);
      expect((await member(coordination, here))?.remaining).to.be.within(1, TTL);
    });

    it('is deleted on request', async () => {
      const { coordination } = harness();
      const id = unique('worker');
      await coordination.heartbeat(id, {}, TTL);
      await coordination.forget(id);
      await coordination.forget(id);
      expect(await member(coordination, id)).to.equal(undefined);
    });

    it('is listed in order of id', async () => {
      const { coordination } = harness();
      const prefix = unique('worker');
      for (const end of ['b', 'C', 'a']) {
        await coordination.heartbeat(`${prefix}-${end}`, {}, TTL);
      }
      const ids = (await coordination.alive()).map(({ id }) => id);
      expect(ids.filter((id) => id.startsWith(prefix))).to.deep.equal([
        `${prefix}-C`,
        `${prefix}-a`,
        `${prefix}-b`,
      ]);
    });
  });
}

function describeCounters(harness: () => CoordinationHarness): void {
  describe('a counter', () => {
    it('sums up all additions within a window', async () => {
      const { coordination } = harness();
      const other = await harness().another();
      const counter = unique('counter');
      await freshWindow(harness(), TTL);
      expect((await coordination.count(counter, 1, TTL)).sum).to.equal(1);
      expect((await other.count(counter, 4, TTL)).sum).to.equal(5);
      const { sum, remaining } = await coordination.count(counter, 0, TTL);
      expect(sum).to.equal(5);
      expect(remaining).to.be.within(1, TTL);
      expect((await coordination.count(unique('counter'), 1, TTL)).sum).to.equal(1);
    });

    it('restarts with the next window', async () => {
      const { coordination, advance } = harness();
      const counter = unique('counter');
      await coordination.count(counter, 3, TTL);
      const { remaining } = await coordination.count(counter, 3, TTL);
      await advance(remaining + 1);
      const next = await coordination.count(counter, 1, TTL);
      expect(next.sum).to.equal(1);
      expect(next.remaining).to.be.within(1, TTL);
    });

    it('can be read within its window without adding to it', async () => {
      const { coordination, advance } = harness();
      const counter = unique('counter');
      await freshWindow(harness(), TTL);
      expect(await coordination.readCount(counter, TTL)).to.equal(null);
      await coordination.count(counter, 3, TTL);
      const seen = await (await harness().another()).readCount(counter, TTL);
      expect(seen?.sum).to.equal(3);
      expect(seen?.remaining).to.be.within(1, TTL);
      expect(await coordination.readCount(counter, TTL + 1)).to.equal(null);
      await advance((seen?.remaining ?? 0) + 1);
      expect(await coordination.readCount(counter, TTL)).to.equal(null);
    });

    it('starts its windows at the same times as every other counter', async () => {
      const { coordination } = harness();
      await freshWindow(harness(), TTL);
      const one = await coordination.count(unique('counter'), 1, TTL);
      const two = await coordination.count(unique('counter'), 1, TTL);
      expect(one.remaining - two.remaining).to.be.within(0, TTL / 2);
    });

    it('loses no concurrent additions', async () => {
      const { coordination } = harness();
      const other = await harness().another();
      const counter = unique('counter');
      await freshWindow(harness(), 20_000);
      const sums = await Promise.all(
        Array.from({ length: 40 }, (_, i) =>
          (i % 2 === 0 ? coordination : other).count(counter, 1, 20_000),
        ),
      );
      const sorted = sums.map(({ sum }) => sum).sort((a, b) => a - b);
      expect(sorted).to.deep.equal(Array.from({ length: 40 }, (_, i) => i + 1));
    });
  });
}

function describeMemory(harness: () => CoordinationHarness): void {
  describe('a remembered value', () => {
    it('is null at first, and then the last value', async () => {
      const { coordination } = harness();
      const name = unique('text');
      expect(await coordination.recall(name)).to.equal(null);
      expect(await coordination.remember(name, 'first', 1)).to.equal(true);
      expect(await coordination.remember(name, 'zweiter ü', 1)).to.equal(true);
      expect(await (await harness().another()).recall(name)).to.equal('zweiter ü');
      expect(await coordination.remember(name, '', 1)).to.equal(true);
      expect(await coordination.recall(name)).to.equal('');
    });

    it('does not change for a smaller fence', async () => {
      const { coordination } = harness();
      const name = unique('text');
      expect(await coordination.remember(name, 'newer', 5)).to.equal(true);
      expect(await (await harness().another()).remember(name, 'older', 4)).to.equal(false);
      expect(await coordination.recall(name)).to.equal('newer');
      expect(await coordination.remember(name, 'newest', 6)).to.equal(true);
      expect(await coordination.recall(name)).to.equal('newest');
    });
  });
}

async function taken(
  coordination: Coordination,
  name: string,
  owner: string,
  ttl = TTL,
): Promise<Lease> {
  const lease = await coordination.acquire(name, owner, ttl);
  if (lease === null) throw new Error(`${owner} did not get the lease ${name}`);
  return lease;
}

async function member(coordination: Coordination, id: string) {
  return (await coordination.alive()).find((one) => one.id === id);
}

/** Waits for the next window if this one may end during the test. */
async function freshWindow(harness: CoordinationHarness, window: number): Promise<void> {
  const { remaining } = await harness.coordination.count(unique('window'), 1, window);
  if (remaining < Math.min(window, 2_000)) await harness.advance(remaining + 1);
}
