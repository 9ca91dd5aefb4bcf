import { expect } from 'chai';
import { runsProjection } from '../../../projections/views/runs.ts';
import { WorkerWorld } from '../runs/worker-world.ts';
import { OwnedTasks } from './owned-tasks.ts';

const second = 1000;

describe('the runs of an agent', () => {
  let workers: WorkerWorld;
  let agents: OwnedTasks;
  beforeEach(async () => {
    workers = await WorkerWorld.open();
    agents = new OwnedTasks(workers.world);
    await agents.register('ada');
    await agents.register('bob');
  });
  afterEach(() => workers.close());

  const task = (id: string, steps: readonly string[], created_by = 'ada'): Promise<void> =>
    workers.task(id, steps, { created_by });
  const stateOf = async (run: string): Promise<string> => (await workers.run(run)).state;
  const errorOf = async (run: string): Promise<unknown> => {
    const last = (await workers.eventsOf(run)).at(-1);
    return last?.type === 'RunFailed' ? last.data.error : last?.type;
  };

  it('finish when it is disabled, but no others start until it is enabled', async () => {
    await task('t', ['hold:first', 'second']);
    await task('other', ['only'], 'bob');
    await workers.start('w', { owned: true });
    const running = await workers.request('t');
    await agents.disable('ada');
    const queued = await workers.request('t');
    const others = await workers.request('other');
    await workers.let('w', running, 'first');
    await workers.clock.advance(10 * second);
    expect(workers.stepsOf(running)).to.deep.equal(['first', 'second']);
    expect(await stateOf(running)).to.equal('succeeded');
    expect(await stateOf(others)).to.equal('succeeded');
    expect(await workers.typesOf(queued)).to.deep.equal(['Requested']);
    await agents.enable('ada');
    await workers.clock.advance(10 * second);
    expect(workers.stepsOf(queued)).to.deep.equal(['first']);
  });

  it('are canceled if its disabling ordered that, including those that have not started', async () => {
    await task('t', ['hold:first', 'second']);
    await workers.start('w', { owned: true });
    const running = await workers.request('t');
    await workers.world.start('scheduler', { owned: true });
    await agents.disable('ada', 'cancel');
    const queued = await workers.request('t');
    await workers.world.project([runsProjection]);
    await workers.clock.advance(2 * second);
    expect(await stateOf(running)).to.equal('canceled');
    expect(workers.stepsOf(running)).to.deep.equal(['first']);
    expect(await workers.typesOf(queued)).to.deep.equal(['Requested', 'Canceled']);
  });

  it('call no further tool once their agent has lost tasks:write', async () => {
    await task('t', ['hold:first', 'second']);
    await workers.start('w', { owned: true });
    const run = await workers.request('t');
    await agents.grant('ada', ['tasks:read']);
    await workers.let('w', run, 'first');
    expect(workers.stepsOf(run)).to.deep.equal(['first']);
    const error = 'not permitted: agent ada lost the scope tasks:write';
    expect(await errorOf(run)).to.equal(error);
  });

  it('do not start without tasks:write, and say why', async () => {
    await task('t', ['only']);
    await workers.start('w', { owned: true });
    await agents.grant('ada', []);
    const run = await workers.request('t');
    expect(workers.stepsOf(run)).to.deep.equal([]);
    expect(await errorOf(run)).to.match(/lost the scope tasks:write/);
  });

  for (const when of ['before', 'after'] as const) {
    for (const append of [1, 2, 3]) {
      it(`are all canceled even if the leader dies ${when} append ${append}`, async () => {
        await task('t', ['hold:first']);
        await workers.start('w', { owned: true });
        const runs = [
          await workers.request('t'),
          await workers.request('t'),
          await workers.request('t'),
        ];
        await workers.world.project([runsProjection]);
        const lease = 3000;
        const one = await workers.world.start('one', { owned: true, lease });
        await workers.world.start('two', { owned: true, lease });
        one.store.dieAt(append, when);
        await agents.disable('ada', 'cancel');
        one.kill();
        await workers.clock.advance(60 * second);
        for (const run of runs) expect(await stateOf(run)).to.equal('canceled');
      });
    }
  }
});
