import { expect } from 'chai';
import { cancelBackfillCommand } from '../../../domain/backfills/backfill-commands.ts';
import { toIso } from '../../../domain/clock.ts';
import { BackfillWorld } from './backfill-harness.ts';
import { minute, START, World } from '../scheduler-world.ts';

const nominal = Array.from({ length: 5 }, (_, n) => toIso(START - (4 - n) * minute));
const span = { from: START - 4 * minute, to: START };

/**
 * A backfill of five times, two at a time, takes eleven appends of its scheduler: a request for each run, a record for
 * each end, and the first record. A canceled one takes fewer.
 */
const APPENDS = Array.from({ length: 11 }, (_, n) => n + 1);

describe('a backfill whose scheduler crashes', () => {
  let world: World;
  let all: BackfillWorld;

  beforeEach(async () => {
    world = await World.open();
    all = new BackfillWorld(world);
    await world.createTask('t');
  });

  afterEach(async () => {
    await all.close();
    await world.close();
  });

  /** Ends runs until all have ended or the process is dead; then another process continues. */
  const goOnElsewhere = async (one: Awaited<ReturnType<BackfillWorld['start']>>) => {
    const most = await all.endAll();
    const died = one.store.dead;
    one.kill();
    await all.start('two');
    await world.clock.advance(4000);
    return { died, most: Math.max(most, await all.endAll()) };
  };

  for (const when of ['before', 'after'] as const) {
    for (const append of APPENDS) {
      it(`${when} append ${append} runs each time once, within its concurrency`, async () => {
        const one = await all.start('one');
        one.store.dieAt(append, when);
        await all.request('b', 't', span, { concurrency: 2 });
        const { died, most } = await goOnElsewhere(one);
        expect(died).to.equal(true);
        expect(most).to.be.at.most(2);
        expect(await all.requested()).to.deep.equal(nominal);
        const { state, progress } = await all.backfill('b');
        expect(state).to.equal('completed');
        expect(progress).to.deep.include({ requested: 5, unfinished: [] });
        expect(progress.outcomes.succeeded).to.equal(5);
      });

      it(`${when} append ${append} leaves no run of a canceled backfill`, async () => {
        const one = await all.start('one');
        one.store.dieAt(append, when);
        await all.request('b', 't', span, { concurrency: 2 });
        const [first] = await all.unfinished();
        if (first !== undefined) await all.end(first.id);
        const { store } = world;
        const context = world.context();
        await cancelBackfillCommand({ store, backfillId: 'b', context });
        await world.idle();
        one.kill();
        const two = await all.start('two');
        await world.clock.advance(4000);
        expect(await all.unfinished()).to.deep.equal([]);
        const { state, progress } = await all.backfill('b');
        expect(state).to.equal('canceled');
        expect(progress.unfinished).to.deep.equal([]);
        const { succeeded, canceled } = progress.outcomes;
        expect(succeeded + canceled).to.equal(progress.requested);
        expect(succeeded).to.equal(first === undefined ? 0 : 1);
        expect(two.backfills.size).to.equal(0);
      });
    }
  }
});
