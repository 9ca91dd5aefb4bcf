import { expect } from 'chai';
import { resumeTaskCommand, updateTaskCommand } from '../../../domain/tasks/task-commands.ts';
import { minute, World } from '../scheduler-world.ts';
import { OwnedTasks } from './owned-tasks.ts';

const hour = 60 * minute;

describe('the fires of an agent', () => {
  let world: World;
  let agents: OwnedTasks;
  beforeEach(async () => {
    world = await World.open();
    agents = new OwnedTasks(world);
    await agents.register('ada');
    await agents.register('bob');
  });
  afterEach(() => world.close());

  const create = (id: string, created_by = 'ada'): Promise<void> =>
    world.createTask(id, { created_by, misfire_policy: 'skip', misfire_grace_seconds: 30 });
  const fired = async (id: string): Promise<number> => (await world.outcome(id)).fired.length;

  it('stop in each process while it is disabled, while those of others continue', async () => {
    await create('t');
    await create('other', 'bob');
    await world.start('one', { owned: true });
    await world.start('two', { owned: true });
    await world.clock.advance(2 * minute);
    await agents.disable('ada');
    await world.clock.advance(hour);
    expect([await fired('t'), await fired('other')]).to.deep.equal([2, 62]);
    expect((await world.task('t')).status).to.equal('active');
    await agents.enable('ada');
    await world.clock.advance(2 * minute);
    expect(await fired('t')).to.equal(4);
  });

  it('stay held in a process that starts in the meantime', async () => {
    await create('t');
    await agents.disable('ada');
    await world.start('one', { owned: true });
    await world.clock.advance(hour);
    expect(await fired('t')).to.equal(0);
    await agents.enable('ada');
    await world.clock.advance(minute);
    expect(await fired('t')).to.equal(1);
  });

  const policies = [
    ['skip', 0, ['missed 60']],
    ['latest', 1, ['missed 59']],
    ['all', 60, []],
  ] as const;
  for (const [missed, runs, skips] of policies) {
    it(`that came due while it was disabled are decided by the policy of the enabling: ${missed}`, async () => {
      const own = missed === 'skip' ? 'all' : 'skip';
      await world.createTask('t', {
        created_by: 'ada',
        misfire_policy: own,
        misfire_grace_seconds: 600,
      });
      await world.start('one', { owned: true });
      await agents.disable('ada');
      await world.clock.advance(hour);
      await agents.enable('ada', missed);
      const { fired: ran, skipped, requested } = await world.outcome('t');
      expect(ran).to.have.length(runs);
      expect(requested).to.deep.equal(ran);
      expect(skipped).to.deep.equal(skips);
      await world.clock.advance(5 * minute);
      expect(await fired('t')).to.equal(runs + 5);
    });
  }

  it('are paused, with that reason, when it loses tasks:write, and continue once resumed', async () => {
    await create('t');
    await create('other', 'bob');
    await world.start('one', { owned: true });
    await agents.grant('ada', ['tasks:read']);
    await world.clock.advance(1);
    const paused = await world.task('t');
    expect([paused.status, paused.pause_reason]).to.deep.equal(['paused', 'scope_lost']);
    expect((await world.task('other')).status).to.equal('active');
    await agents.grant('ada', ['tasks:write']);
    await world.clock.advance(hour);
    expect(await fired('t')).to.equal(0);
    await resumeTaskCommand({ ...world.command('t'), missed: 'skip' });
    await world.idle();
    await world.clock.advance(minute);
    expect(await fired('t')).to.equal(1);
  });

  it('do not run even if the task is resumed just when its agent loses the scope', async () => {
    await create('t');
    await world.start('one', { owned: true });
    await agents.grant('ada', []);
    await world.clock.advance(1);
    await resumeTaskCommand({ ...world.command('t'), missed: 'skip' });
    await world.idle();
    await world.clock.advance(hour);
    expect(await fired('t')).to.equal(0);
    expect((await world.task('t')).pause_reason).to.equal('scope_lost');
  });

  it('belong to the new agent after a task was handed over', async () => {
    await create('t');
    await world.start('one', { owned: true });
    await agents.disable('ada');
    await updateTaskCommand({ ...world.command('t'), changes: { created_by: 'bob' } });
    await world.idle();
    await world.clock.advance(2 * minute);
    expect(await fired('t')).to.equal(2);
  });

  for (const when of ['before', 'after'] as const) {
    for (const append of [1, 2, 3]) {
      it(`are all paused even if the leader dies ${when} append ${append} of the pauses`, async () => {
        for (const id of ['t1', 't2', 't3']) await create(id);
        const lease = 3000;
        const one = await world.start('one', { owned: true, lease });
        await world.start('two', { owned: true, lease });
        one.store.dieAt(append, when);
        await agents.grant('ada', []);
        one.kill();
        await world.clock.advance(minute);
        for (const id of ['t1', 't2', 't3']) {
          const { status, pause_reason } = await world.task(id);
          expect([id, status, pause_reason]).to.deep.equal([id, 'paused', 'scope_lost']);
          expect(await fired(id)).to.equal(0);
        }
      });
    }
  }
});
