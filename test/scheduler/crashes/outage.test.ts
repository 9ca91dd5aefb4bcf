import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import type { MisfirePolicy } from '../../../domain/vocabulary.ts';
import { minute, START, World } from '../scheduler-world.ts';

/** The fires that a minutely task misses in three days. */
const MISSED = 3 * 24 * 60;

/** The most missed fires that the policy `all` runs. */
const MAX_RUNS = 100;

describe('an outage of three days with 100 minutely tasks', function () {
  this.timeout(180_000);
  const policies = ['skip', 'latest', 'all'] as const;
  let world: World;
  let byPolicy: Record<MisfirePolicy, readonly string[]>;

  before(async () => {
    world = await World.open();
    byPolicy = { skip: [], latest: [], all: [] };
    for (let n = 0; n < 100; n += 1) {
      const misfire_policy = policies[n % 3] ?? 'skip';
      const id = `${misfire_policy} ${n}`;
      byPolicy[misfire_policy] = [...byPolicy[misfire_policy], id];
      await world.createTask(id, { misfire_policy, misfire_grace_seconds: 10 });
    }
    world.clock.jumpTo(START + MISSED * minute + 30_000);
    await world.start('one', { requester: true });
    await world.clock.advance(5000);
  });
  after(() => world.close());

  /** The nominal times of the newest fires that were missed. */
  const newest = (count: number): string[] =>
    Array.from({ length: count }, (_, index) =>
      toIso(START + (MISSED - count + 1 + index) * minute),
    );

  const wanted = { skip: 0, latest: 1, all: MAX_RUNS };
  for (const policy of policies) {
    it(`causes one record and ${wanted[policy]} runs for each task with the policy ${policy}`, async () => {
      const fires = await world.events('fires-');
      const runs = await world.events('run-');
      for (const id of byPolicy[policy]) {
        const own = fires.filter(({ stream }) => stream === `fires-${id}`);
        expect(own).to.have.lengthOf(1 + wanted[policy]);
        const [record, ...fired] = own;
        expect(record?.type).to.equal('FiresSkipped');
        expect(record?.data).to.deep.include({
          reason: 'missed',
          count: MISSED - wanted[policy],
          from: toIso(START + minute),
          to: toIso(START + (MISSED - wanted[policy]) * minute),
        });
        const nominal = fired.map((event) => (event.type === 'Fired' ? event.data.nominal : ''));
        expect(nominal).to.deep.equal(newest(wanted[policy]));
        const requested = runs.flatMap((event) =>
          event.type === 'RunRequested' && event.data.task_id === id
            ? [event.data.scheduled_for]
            : [],
        );
        expect(requested).to.deep.equal(nominal);
      }
    });
  }

  it('causes no other writes, and the next minute is like any other', async () => {
    const owed = policies.reduce(
      (sum, policy) => sum + byPolicy[policy].length * (1 + 2 * wanted[policy]),
      0,
    );
    const before = await world.events();
    expect(before).to.have.lengthOf(100 + owed);
    await world.clock.advance(minute);
    const after = (await world.events()).slice(before.length);
    expect(after.map(({ type }) => type).sort()).to.deep.equal(
      ['Fired', 'RunRequested'].flatMap((type) => Array<string>(100).fill(type)),
    );
  });
});
