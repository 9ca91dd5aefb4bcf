import { expect } from 'chai';
import type { JobHolder, JobClaim, JobLease } from '../../scheduler/coordination.ts';
import type { CoordinationHarness } from './coordination.ts';

/** The duration of a lease and the longer time limit of a job, in milliseconds. */
const TTL = 3_000;
const LIMIT = 60_000;

let made = 0;

const holder: JobHolder = { worker: 'worker-1', agent: 'agent-1', run: 'run-1' };

/** A claim of a new job, or of the given one. */
function claim(job?: string, given: Partial<JobClaim> = {}): JobClaim {
  made += 1;
  const id = `${process.pid}-${Date.now()}-${made}`;
  return { job: job ?? `job-${id}`, lease: `lease-${id}`, holder, limit: LIMIT, ...given };
}

/** The contract of every coordination store about leases of jobs. */
export function describeJobLeases(harness: () => CoordinationHarness): void {
  const jobs = () => harness().coordination.jobs;

  async function takeOne(wanted: JobClaim, ttl = TTL): Promise<boolean> {
    const [result] = await jobs().take([wanted], ttl);
    return result?.taken === true;
  }
  const isCurrent = async (lease: JobLease): Promise<boolean> =>
    (await jobs().check([lease]))[0] !== null;

  describe('the lease of a job', () => {
    it('goes to the first worker that asks, and to no other while it lasts', async () => {
      const first = claim();
      const second = claim(first.job, { holder: { ...holder, worker: 'worker-2' } });
      expect(await takeOne(first)).to.equal(true);
      const [held] = await (await harness().another()).jobs.take([second], TTL);
      if (held === undefined || held.taken) throw new Error('it was taken twice');
      expect(held).to.include({ job: first.job, lease: first.lease, timedOut: false, losses: 0 });
      expect(held.holder).to.deep.equal(holder);
      expect(held.remaining).to.be.within(1, TTL);
    });

    it('is given for many jobs at once, in their order', async () => {
      const [one, two, three] = [claim(), claim(), claim()];
      expect(await takeOne(two)).to.equal(true);
      const results = await jobs().take([one, claim(two.job), three], TTL);
      expect(results.map(({ taken }) => taken)).to.deep.equal([true, false, true]);
      const checked = await jobs().check([three, { ...one, lease: 'another' }, two]);
      expect(checked).to.deep.equal([holder, null, holder]);
      const looked = await jobs().look([three.job, 'unknown', one.job]);
      expect(looked.map((each) => each?.lease)).to.deep.equal([three.lease, undefined, one.lease]);
    });

    it('lasts from its renewal on, for the same holder', async () => {
      const one = claim();
      await takeOne(one);
      await harness().advance(TTL / 2);
      const renewed = await jobs().renew([one, { ...one, lease: 'another' }], TTL);
      expect(renewed).to.deep.equal([holder, null]);
      await harness().advance(TTL / 2 + 100);
      expect(await isCurrent(one)).to.equal(true);
      expect(await takeOne(claim(one.job))).to.equal(false);
    });

    it('is lost by a silent worker, so another gets it, and the first cannot renew it', async () => {
      const first = claim();
      await takeOne(first);
      await harness().advance(TTL + 1);
      expect(await isCurrent(first)).to.equal(false);
      expect(await jobs().renew([first], TTL)).to.deep.equal([null]);
      const second = claim(first.job);
      expect(await jobs().take([second], TTL)).to.deep.equal([{ taken: true, losses: 1 }]);
      expect(await isCurrent(second)).to.equal(true);
      expect(await isCurrent(first)).to.equal(false);
      await jobs().drop([first]);
      expect(await isCurrent(second)).to.equal(true);
    });

    it('times out at its limit if it was renewed until then, and is given to no other', async () => {
      const one = claim(undefined, { limit: TTL + TTL / 2 });
      await takeOne(one);
      await harness().advance(TTL - 500);
      expect(await jobs().renew([one], TTL)).to.deep.equal([holder]);
      await harness().advance(TTL / 2 + 501);
      expect(await isCurrent(one)).to.equal(false);
      const [held] = await jobs().take([claim(one.job)], TTL);
      expect(held).to.include({ taken: false, timedOut: true, lease: one.lease });
      const [looked] = await jobs().look([one.job]);
      expect(looked?.timedOut).to.equal(true);
    });

    it('is lost, not timed out, if its worker was silent from the start', async () => {
      const one = claim(undefined, { limit: TTL });
      await takeOne(one);
      await harness().advance(TTL + 1);
      expect((await jobs().look([one.job]))[0]?.timedOut).to.equal(false);
      expect(await takeOne(claim(one.job))).to.equal(true);
    });

    it('ends when it is dropped', async () => {
      const one = claim();
      await takeOne(one);
      await jobs().drop([one]);
      expect(await jobs().look([one.job])).to.deep.equal([null]);
      expect(await jobs().take([claim(one.job)], TTL)).to.deep.equal([{ taken: true, losses: 0 }]);
    });

    it('is free when the clock is set back by an hour', async () => {
      const one = claim();
      await takeOne(one);
      await harness().advance(-3_600_000);
      expect(await isCurrent(one)).to.equal(false);
      expect(await takeOne(claim(one.job))).to.equal(true);
    });

    it('goes to exactly one of many workers that ask at the same time', async () => {
      const other = (await harness().another()).jobs;
      const { job } = claim();
      const asked = Array.from({ length: 10 }, (_, i) =>
        (i % 2 === 0 ? jobs() : other).take([claim(job)], TTL),
      );
      const taken = (await Promise.all(asked)).flat().filter((each) => each.taken);
      expect(taken).to.have.length(1);
    });

    it('is listed with its remaining time', async () => {
      const one = claim();
      await takeOne(one);
      const found = (await jobs().all()).find(({ job }) => job === one.job);
      expect(found?.holder).to.deep.equal(holder);
      expect(found?.remaining).to.be.within(1, TTL);
    });

    it('causes no call for empty lists', async () => {
      expect(await jobs().take([], TTL)).to.deep.equal([]);
      expect(await jobs().renew([], TTL)).to.deep.equal([]);
      expect(await jobs().check([])).to.deep.equal([]);
      expect(await jobs().look([])).to.deep.equal([]);
      await jobs().drop([]);
      await jobs().see([]);
    });
  });

  describe('a worker', () => {
    it('is listed with the time since it was last seen', async () => {
      const [one, two] = [claim().job, claim().job];
      await jobs().see([one, two]);
      await harness().advance(5_000);
      await jobs().see([two]);
      const seen = await (await harness().another()).jobs.seen();
      expect(seen.get(one)).to.be.within(5_000, 5_000 + TTL);
      expect(seen.get(two)).to.be.within(0, TTL);
      expect(seen.has('never')).to.equal(false);
    });

    it('is forgotten after two days of silence', async () => {
      const one = claim().job;
      await jobs().see([one]);
      await harness().advance(2 * 86_400_000 + 1_000);
      expect((await jobs().seen()).has(one)).to.equal(false);
    });
  });
}
