import { expect } from 'chai';
import { runsProjection } from '../../../projections/views/runs.ts';
import { folded } from '../../projections/recorded.ts';
import { WorkerWorld } from './worker-world.ts';

describe('lines of a running step', () => {
  let world: WorkerWorld;

  beforeEach(async () => {
    world = await WorkerWorld.open();
  });

  afterEach(async () => {
    await world.close();
  });

  /** A run whose only step logs `begun`, works for ten seconds, and logs `done`. */
  const slowRun = async (): Promise<string> => {
    world.acts.set('slow', async ({ log, clock, signal }) => {
      log('info', 'begun');
      await clock.sleep(10_000, signal);
      log('info', 'done');
    });
    await world.task('t', ['slow']);
    return world.request('t');
  };

  /** The lines in the view of runs. */
  const logOf = async (runId: string): Promise<readonly unknown[]> => {
    const run = folded(runsProjection, await world.eventsOf(runId)).get(runId);
    return run?.log.map(({ message }) => message) ?? [];
  };

  it('are in the view within a second, and only once after the end of the step', async () => {
    await world.start('one');
    const runId = await slowRun();
    expect(await logOf(runId)).to.deep.equal([]);
    await world.clock.advance(1000);
    expect(await world.run(runId)).to.include({ state: 'running' });
    expect(await logOf(runId)).to.deep.equal(['begun']);
    await world.clock.advance(10_000);
    expect(await world.run(runId)).to.include({ state: 'succeeded' });
    expect(await logOf(runId)).to.deep.equal(['begun', 'done']);
  });

  it('stay in the log of a run that is canceled in the meantime', async () => {
    await world.start('one');
    const runId = await slowRun();
    await world.clock.advance(1000);
    await world.cancel(runId);
    expect(await world.run(runId)).to.include({ state: 'canceled' });
    expect(await logOf(runId)).to.deep.equal(['begun']);
  });

  it('include those of both workers if one continues after the other has died', async () => {
    const one = await world.start('one');
    const runId = await slowRun();
    await world.clock.advance(1000);
    one.kill();
    await world.start('two');
    await world.clock.advance(120_000);
    expect(await world.run(runId)).to.include({ state: 'succeeded', attempt: 1 });
    expect(await logOf(runId)).to.deep.equal(['begun', 'begun', 'done']);
  });
});
