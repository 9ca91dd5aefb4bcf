import { expect } from 'chai';
import type { RecordedEvent } from '../../../domain/event-store.ts';
import { readKey } from '../../../domain/keys/key-stream.ts';
import type { KeyName } from '../../../domain/keys/key.ts';
import { deferred } from '../../support/signals.ts';
import { KeyWorld, LEASE, OWNER, SHORT_LEASE, faultsOfKeys, soon } from './key-harness.ts';
import { longVersions } from '../../support/left-out.ts';

const printer: KeyName = { kind: 'concurrency', owner: OWNER, key: 'printer' };

/** Where processes crash and pause: a few places for each limit; all of them in the long test. */
const rounds = Array.from({ length: longVersions() ? 36 : 3 }, (_, index) => ({
  limit: 1 + (index % 3),
  diesAt: 2 + ((index * 5) % 13),
  haltsAt: 2 + ((index * 7) % 11),
  when: index % 2 === 0 ? ('before' as const) : ('after' as const),
}));

const runs = Array.from({ length: 36 }, (_, index) => `r${String(index).padStart(2, '0')}`);

/** Slots that were taken beyond the limit of their run. */
function overLimit(log: readonly RecordedEvent[]): readonly string[] {
  let before: readonly string[] = [];
  return log.flatMap((event) => {
    if (!event.stream.startsWith('key-') || !('holders' in event.data)) return [];
    const { holders } = event.data;
    const faults = holders.flatMap(({ run_id, limit }) =>
      !before.includes(run_id) && holders.length > limit
        ? [`${event.position}: ${run_id} is one of ${holders.length}`]
        : [],
    );
    before = holders.map(({ run_id }) => run_id);
    return faults;
  });
}

describe('processes that share a key, one killed and one paused for longer than a lease', () => {
  let world: KeyWorld;
  beforeEach(async () => {
    world = await KeyWorld.open();
  });
  afterEach(() => world.close());

  for (const { limit, diesAt, haltsAt, when } of rounds) {
    it(`never exceed ${limit}, and run all: killed ${when} append ${diesAt}, paused at ${haltsAt}`, async function () {
      this.timeout(120_000);
      await world.task('a', { concurrency_key: 'printer', concurrency_limit: limit });
      await world.task('b', { concurrency_key: 'printer' });
      for (const [index, run] of runs.entries()) {
        await world.request(index % 3 === 0 ? 'b' : 'a', run, { priority: 1 + (index % 4) });
      }
      const dying = await world.connect();
      dying.dieAt(diesAt, when);
      const first = await world.process('w1', { store: dying, hold: false });
      await soon(() => expect(dying.dead).to.equal(true), 'the first to die');
      await first.kill();

      const halting = await world.connect();
      const goesOn = deferred<void>();
      const halted = halting.pauseAt(haltsAt, goesOn.promise);
      await world.process('w2', { store: halting, hold: false });
      await halted;
      world.clock.shift(LEASE + 1);
      const third = await world.process('w3', { hold: false });
      const fourth = await world.process('w4', { hold: false, lease: SHORT_LEASE });
      for (const { keeper, membership } of [third, fourth]) {
        await soon(() => expect(membership.alive).to.equal(true), 'a process to join');
        await keeper.recheck(true);
      }
      goesOn.resolve();
      await fourth.kill();

      for (const run of runs) await world.reaches(run, 'succeeded');
      await soon(async () => {
        const state = await readKey(world.store, printer);
        expect([...(state?.holders ?? []), ...(state?.waiters ?? [])]).to.deep.equal([]);
      }, 'the key to be free');
      const log = await world.log();
      expect(faultsOfKeys(log, 'concurrency', limit)).to.deep.equal([]);
      expect(overLimit(log)).to.deep.equal([]);
      const ends = log.filter(({ type }) => type === 'RunSucceeded').map(({ stream }) => stream);
      expect(ends.toSorted()).to.deep.equal(runs.map((run) => `run-${run}`));
    });
  }
});
