import { expect } from 'chai';
import { cancelBackfillCommand } from '../../../domain/backfills/backfill-commands.ts';
import { BEGINNING } from '../../../domain/event-store.ts';
import { backfillsProjection } from '../../../projections/views/backfills.ts';
import { BackfillWorld } from './backfill-harness.ts';
import { minute, minutes, START, World } from '../scheduler-world.ts';

const span = (from: number, to: number): { readonly from: number; readonly to: number } => ({
  from: START + from * minute,
  to: START + to * minute,
});

/** Backfills that were accepted concurrently do not name each other as earlier ones. */
describe('concurrent backfills of missing times', () => {
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

  const sorted = async (): Promise<readonly string[]> => [...(await all.requested())].sort();

  /** Calls a function after each append until a condition holds. */
  const until = async (
    holds: () => Promise<boolean>,
    after: () => Promise<unknown>,
  ): Promise<void> => {
    const stop = new AbortController();
    const prefixes = ['backfill-', 'run-'];
    const log = world.store.subscribe({ after: BEGINNING, prefixes, signal: stop.signal });
    for await (const _ of log) {
      if (await holds()) return stop.abort();
      await after();
      if (await holds()) return stop.abort();
      // A backfill that waits for another one polls.
      await world.clock.advance(1000);
    }
  };

  /** Ends runs until backfills are completed. */
  const finish = (...ids: readonly string[]): Promise<void> =>
    until(
      async () => {
        const states = await Promise.all(ids.map(async (id) => (await all.backfill(id)).state));
        return states.every((state) => state === 'completed');
      },
      () => all.endAll(),
    );

  it('run each nominal time once', async () => {
    await all.start('one');
    await all.request('a', 't', span(-5, -2), { concurrency: 1 });
    await all.request('b', 't', span(-4, 0), { concurrency: 3 });
    // The second waits for times that the first has yet to decide.
    expect(await all.requested()).to.deep.equal(minutes(-5, -5));
    await finish('a', 'b');
    expect(await sorted()).to.deep.equal(minutes(-5, 0));
    expect((await all.backfill('a')).progress).to.include({ requested: 4, existing: 0 });
    expect((await all.backfill('b')).progress).to.include({ requested: 2, existing: 3 });
  });

  it('run each time once if two processes believe they are the leader', async () => {
    await all.start('one', { lead: 'x' });
    await all.start('two', { lead: 'y' });
    await all.request('a', 't', span(-5, 0), { concurrency: 2 });
    await all.request('b', 't', span(-5, 0), { concurrency: 3 });
    await all.request('c', 't', span(-7, -3), { concurrency: 5 });
    await finish('a', 'b', 'c');
    expect(await sorted()).to.deep.equal(minutes(-7, 0));
  });

  it('leave the times of a canceled first backfill to the second, also those of its canceled runs', async () => {
    await all.start('one');
    await all.request('a', 't', span(-5, 0), { concurrency: 2 });
    await all.request('b', 't', span(-5, 0), { concurrency: 2 });
    const [first] = await all.unfinished();
    await all.end(first?.id ?? '');
    const { store } = world;
    const context = world.context();
    await cancelBackfillCommand({ store, backfillId: 'a', context });
    const isOver = async (): Promise<boolean> =>
      (await all.backfill('a')).progress.unfinished.length === 0;
    await until(isOver, () => world.idle());
    await finish('b');
    const runs = await world.events('run-');
    const succeeded = runs.filter(({ type }) => type === 'RunSucceeded');
    const canceled = runs.filter(({ type }) => type === 'RunCanceled');
    expect(succeeded).to.have.length(6);
    const of = (nominal: string): number =>
      runs.filter(
        ({ type, data }) =>
          type === 'RunRequested' && 'scheduled_for' in data && data.scheduled_for === nominal,
      ).length;
    // One run for each time, and a second one for the time whose first run was canceled.
    expect(minutes(-5, 0).reduce((sum, nominal) => sum + of(nominal), 0)).to.equal(
      6 + canceled.length,
    );
    expect(of(minutes(-5, -5)[0] ?? '')).to.equal(1);
  });

  it('are found in the view if a process did not see them in the log', async () => {
    await all.request('a', 't', span(-3, 0), { concurrency: 1 });
    await all.request('b', 't', span(-3, 0), { concurrency: 4 });
    await world.project([backfillsProjection]);
    await all.start('one');
    await finish('a', 'b');
    expect(await sorted()).to.deep.equal(minutes(-3, 0));
  });

  for (const when of ['before', 'after'] as const) {
    for (const append of [1, 2, 4, 7, 10]) {
      it(`run each time once when their scheduler crashes ${when} append ${append}`, async () => {
        const one = await all.start('one');
        one.store.dieAt(append, when);
        await all.request('a', 't', span(-4, -1), { concurrency: 2 });
        await all.request('b', 't', span(-3, 0), { concurrency: 2 });
        await all.endAll();
        const died = one.store.dead;
        one.kill();
        await all.start('two');
        await world.clock.advance(4000);
        await finish('a', 'b');
        expect(died).to.equal(true);
        expect(await sorted()).to.deep.equal(minutes(-4, 0));
      });
    }
  }
});
