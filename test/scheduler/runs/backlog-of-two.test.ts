import { expect } from 'chai';
import { preferredWorker } from '../../../scheduler/runs/preferred-worker.ts';
import { LEASE, WorkerWorld, type Effect } from './worker-world.ts';

/** How long each run takes. Milliseconds. */
const RUN_MS = 50;

const isForeign = ({ worker, run }: Effect): boolean =>
  preferredWorker(run, ['one', 'two']) !== worker;

describe('a backlog of short runs that two workers share', () => {
  let world: WorkerWorld;
  beforeEach(async () => {
    world = await WorkerWorld.open();
    await world.task('t', ['hold:a']);
    await world.start('one', { slots: 1 });
    await world.start('two', { slots: 1 });
    // Each worker then knows the other.
    await world.clock.advance(LEASE);
    for (let left = 50; left > 0; left -= 1) await world.request('t');
    await world.clock.advance(RUN_MS);
  });
  afterEach(() => world.close());

  /** Lets workers finish their runs, again and again. */
  async function work(rounds: number, ...workers: readonly string[]): Promise<void> {
    for (let round = 0; round < rounds; round += 1) {
      for (const name of workers) {
        const last = world.effects.findLast(({ worker }) => worker === name);
        if (last !== undefined) await world.let(name, last.run, 'a');
      }
      await world.clock.advance(RUN_MS);
    }
  }

  const startedBy = (name: string): readonly Effect[] =>
    world.effects.filter(({ worker }) => worker === name);

  it('is split, each worker starting its own share while both have runs left', async () => {
    await work(15, 'one', 'two');
    expect(startedBy('one')).to.have.lengthOf.above(10);
    expect(startedBy('two')).to.have.lengthOf.above(10);
    expect(world.effects.filter(isForeign)).to.deep.equal([]);
  });

  it('ends with the help of the worker that is done first', async () => {
    await work(60, 'one', 'two');
    expect(world.effects).to.have.lengthOf(50);
  });

  it('is done by one worker if the other starts nothing', async () => {
    await work(80, 'one');
    expect(startedBy('two')).to.have.lengthOf(1);
    expect(startedBy('one')).to.have.lengthOf(49);
    // The worker need not finish its own runs first.
    const firstForeign = startedBy('one').findIndex(isForeign);
    expect(firstForeign).to.be.within(1, 25);
  });
});
