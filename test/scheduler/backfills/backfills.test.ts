import { expect } from 'chai';
import {
  cancelBackfillCommand,
  planBackfill,
  previewBackfill,
} from '../../../domain/backfills/backfill-commands.ts';
import { toIso } from '../../../domain/clock.ts';
import { changeKey } from '../../../domain/keys/key-stream.ts';
import { releaseKey } from '../../../domain/keys/key.ts';
import { overlapKey } from '../../../domain/keys/overlap.ts';
import { ownersOf } from '../../../domain/keys/task-owners.ts';
import {
  cancelTaskCommand,
  pauseTaskCommand,
  requestManualRun,
  resumeTaskCommand,
  updateTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { backfillsProjection } from '../../../projections/views/backfills.ts';
import { BackfillWorld } from './backfill-harness.ts';
import { minute, minutes, START, World } from '../scheduler-world.ts';

/** The ten minutes before the start. */
const before = { from: START - 9 * minute, to: START };

describe('a backfill', () => {
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

  const cancel = async (id: string): Promise<void> => {
    const { store } = world;
    const context = world.context();
    await cancelBackfillCommand({ store, backfillId: id, context });
    await world.idle();
  };

  it('runs each nominal time once, within its concurrency', async () => {
    await all.start('one');
    await all.request('b', 't', before, { concurrency: 3 });
    expect(await all.requested()).to.deep.equal(minutes(-9, -7));
    expect(await all.endAll()).to.equal(3);
    expect(await all.requested()).to.deep.equal(minutes(-9, 0));
    const { state, progress } = await all.backfill('b');
    expect(state).to.equal('completed');
    expect(progress).to.deep.equal({
      up_to: toIso(START),
      requested: 10,
      existing: 0,
      unfinished: [],
      outcomes: { succeeded: 10, failed: 0, canceled: 0, skipped: 0 },
    });
  });

  it('requests runs with a priority after all live fires, pinned to the requested task revision', async () => {
    await all.start('one');
    await all.request('b', 't', before, { concurrency: 1 });
    await updateTaskCommand({ ...world.command('t'), changes: { schedule_expr: '0 0 * * *' } });
    const [run] = await all.unfinished();
    expect(run?.run.request).to.deep.include({
      trigger: 'backfill',
      priority: 10,
      task_revision: 0,
    });
    await all.endAll();
    expect(await all.requested()).to.deep.equal(minutes(-9, 0));
  });

  it('leaves out times that have a run, also of an earlier backfill', async () => {
    await world.start('scheduler');
    await world.clock.advance(5 * minute);
    await all.start('one');
    await all.request('first', 't', { from: START - 2 * minute, to: START - minute });
    await all.endAll();
    const span = { from: START - 4 * minute, to: START + 5 * minute };
    await all.request('b', 't', span, { earlier: ['first'] });
    await all.endAll();
    expect(await all.requested()).to.deep.equal([
      ...minutes(-2, -1),
      ...minutes(-4, -3),
      ...minutes(0, 0),
    ]);
    expect((await all.backfill('b')).progress).to.include({ requested: 3, existing: 7 });
    expect((await all.backfill('b')).state).to.equal('completed');
  });

  it('runs all times if requested, whatever has run', async () => {
    await world.start('scheduler');
    await world.clock.advance(2 * minute);
    await all.start('one');
    await all.request('b', 't', { from: START, to: START + 2 * minute }, { only: 'all' });
    await all.endAll();
    expect(await all.requested()).to.deep.equal(minutes(0, 2));
  });

  it('leaves times to the schedule that it is about to decide', async () => {
    world.clock.jumpTo(START + 3 * minute);
    await all.start('one');
    await all.request('b', 't', { from: START, to: START + 3 * minute });
    await all.endAll();
    expect(await all.requested()).to.deep.equal(minutes(0, 0));
    expect((await all.backfill('b')).state).to.equal('running');
    // The newest fire is within its grace; the two before it are missed.
    await world.start('scheduler');
    await world.clock.advance(1000);
    await all.endAll();
    const { fired } = await world.outcome('t');
    const requested = await all.requested();
    expect([...fired, ...requested].sort()).to.deep.equal(minutes(0, 3));
    expect((await all.backfill('b')).state).to.equal('completed');
  });

  it("leaves the schedule's backlog of a pause or of an earlier rule to the schedule", async () => {
    const three = { from: START, to: START + 3 * minute };
    const ends = { ends_at: toIso(START + 60 * minute) };
    await world.createTask('changed', { misfire_policy: 'all' });
    await pauseTaskCommand(world.command('t'));
    world.clock.jumpTo(START + 3.5 * minute);
    await resumeTaskCommand({ ...world.command('t'), missed: 'all' });
    await updateTaskCommand({ ...world.command('changed'), changes: ends });
    await all.start('one');
    await all.request('b', 't', three);
    await all.request('c', 'changed', three);
    await all.endAll();
    expect(await all.requested()).to.deep.equal([...minutes(0, 0), ...minutes(0, 0)]);
    await world.start('scheduler');
    await world.clock.advance(1000);
    expect((await world.outcome('t')).fired).to.deep.equal(minutes(1, 3));
    expect((await world.outcome('changed')).fired).to.deep.equal(minutes(1, 3));
    await all.endAll();
    expect(await all.requested()).to.have.lengthOf(2);
    for (const id of ['b', 'c']) expect((await all.backfill(id)).state).to.equal('completed');
  });

  it('leaves out a fire whose run is still to be requested', async () => {
    const scheduler = await world.start('scheduler');
    let fires = 0;
    scheduler.store.onAppend = (stream) => {
      fires += stream.startsWith('run-') ? 1 : 0;
      if (fires === 2) scheduler.kill();
    };
    await world.clock.advance(2 * minute);
    await all.start('one');
    await all.request('b', 't', { from: START + minute, to: START + 2 * minute });
    expect((await all.backfill('b')).progress).to.include({ requested: 0, existing: 2 });
  });

  it('leaves out an old fire that was just decided, whose run is still to be requested', async () => {
    await world.createTask('late', { misfire_policy: 'all' });
    world.clock.jumpTo(START + 30 * minute);
    await all.start('one');
    await all.request('b', 'late', { from: START, to: START + 3 * minute });
    await all.endAll();
    const store = world.connect();
    store.onAppend = (stream) => {
      if (stream.startsWith('run-')) store.dead = true;
    };
    const scheduler = await world.start('scheduler', { store });
    scheduler.kill();
    await world.clock.advance(1000);
    await all.endAll();
    expect((await world.outcome('late')).fired).to.include.members(minutes(1, 3));
    expect(await all.requested()).to.deep.equal(minutes(0, 0));
    expect((await all.backfill('b')).progress).to.include({ requested: 1, existing: 3 });
  });

  it('runs recent fires that were skipped, as its preview says', async () => {
    const span = { from: START + minute, to: START + 3 * minute };
    await world.createTask('once', { dedupe_key: 'k', dedupe_window_seconds: 3600 });
    await world.start('scheduler');
    await world.clock.advance(3 * minute);
    expect((await world.outcome('once')).requested).to.deep.equal(minutes(1, 1));
    const ask = { ...span, only: 'missing' as const, concurrency: 3 };
    const task = await world.task('once');
    const plan = planBackfill('once', task, ask, [], world.clock.now());
    const preview = await previewBackfill(world.store, task, plan, 3);
    expect(preview).to.deep.equal({ existing: 1, to_request: 2, first: minutes(2, 3) });
    await all.start('one');
    await all.request('b', 'once', span);
    await all.endAll();
    expect(await all.requested()).to.deep.equal(minutes(2, 3));
    expect((await all.backfill('b')).progress).to.include({ requested: 2, existing: 1 });
  });

  it('counts how its runs ended', async () => {
    await all.start('one');
    await all.request('b', 't', { from: START - 3 * minute, to: START });
    for (const how of ['failed', 'succeeded', 'failed', 'succeeded'] as const) {
      const [first] = await all.unfinished();
      await all.end(first?.id ?? '', how);
    }
    const { outcomes } = (await all.backfill('b')).progress;
    expect(outcomes).to.deep.equal({ succeeded: 2, failed: 2, canceled: 0, skipped: 0 });
  });

  it('waits while its task is paused', async () => {
    await all.start('one');
    await all.request('b', 't', before, { concurrency: 2 });
    await pauseTaskCommand(world.command('t'));
    await all.endAll();
    await world.clock.advance(10 * minute);
    expect(await all.requested()).to.have.lengthOf(2);
    expect((await all.backfill('b')).state).to.equal('running');
    await resumeTaskCommand({ ...world.command('t'), missed: 'skip' });
    await world.idle();
    await all.endAll();
    expect(await all.requested()).to.deep.equal(minutes(-9, 0));
    expect((await all.backfill('b')).state).to.equal('completed');
  });

  it('ends with its task, and its runs with it', async () => {
    await all.start('one');
    await all.request('b', 't', before);
    await cancelTaskCommand(world.command('t'));
    await world.idle();
    const { state, progress } = await all.backfill('b');
    expect(state).to.equal('canceled');
    expect(progress.unfinished).to.deep.equal([]);
    expect(progress.outcomes.canceled).to.equal(3);
    expect(await all.unfinished()).to.deep.equal([]);
    expect(await all.requested()).to.have.lengthOf(3);
  });

  it('ends when it is canceled, and cancels its runs', async () => {
    const one = await all.start('one');
    await all.request('b', 't', before);
    const [first] = await all.unfinished();
    await all.end(first?.id ?? '');
    await cancel('b');
    expect(await all.unfinished()).to.deep.equal([]);
    const { state, progress } = await all.backfill('b');
    expect(state).to.equal('canceled');
    expect(progress.outcomes).to.include({ succeeded: 1, canceled: 3 });
    expect(one.backfills.size).to.equal(0);
  });

  it('is found in the view by a later process', async () => {
    const one = await all.start('one');
    await all.request('b', 't', before);
    await all.request('over', 't', before, { only: 'all' });
    await cancel('over');
    await one.stop();
    await world.project([backfillsProjection]);
    const two = await all.start('two');
    expect(two.backfills.size).to.equal(1);
    await all.endAll();
    expect((await all.backfill('b')).state).to.equal('completed');
  });

  it('continues after the subscription has failed', async () => {
    const one = await all.start('one');
    await all.request('b', 't', before);
    one.store.onMessage = (_, prefixes) => {
      if (!prefixes.includes('run-')) return;
      one.store.onMessage = () => {};
      throw new Error('broken off');
    };
    await all.endAll();
    await world.clock.advance(1000);
    await all.endAll();
    expect(one.failures).to.have.lengthOf(1);
    expect(await all.requested()).to.deep.equal(minutes(-9, 0));
    expect((await all.backfill('b')).state).to.equal('completed');
  });

  it('retries while the log is unavailable', async () => {
    const one = await all.start('one');
    let failures = 4;
    one.store.onAppend = () => {
      failures -= 1;
      if (failures >= 0) throw new Error('away');
    };
    await all.request('b', 't', before);
    await world.clock.advance(20_000);
    await all.endAll();
    expect(await all.requested()).to.deep.equal(minutes(-9, 0));
  });

  describe('of a task whose runs must not overlap', () => {
    for (const overlap_policy of ['skip', 'queue', 'cancel_running'] as const) {
      it(`under ${overlap_policy}, has one run at a time and lets other runs go first`, async () => {
        await world.createTask('o', { overlap_policy });
        const manual = await requestManualRun(
          world.store,
          'o',
          await world.task('o'),
          world.context(),
        );
        await all.start('one');
        await all.request('b', 'o', before, { concurrency: 5 });
        await world.clock.advance(5000);
        expect(await all.requested()).to.deep.equal([]);
        await all.end(manual.runId);
        expect((await world.events(`run-${manual.runId}`)).map(({ type }) => type)).to.deep.equal([
          'RunRequested',
          'RunStarted',
          'RunSucceeded',
        ]);
      });
    }

    it('waits for runs from before and after a change of owner', async () => {
      await world.createTask('o', { overlap_policy: 'queue' });
      const run = async (): Promise<string> => {
        const task = await world.task('o');
        return (await requestManualRun(world.store, 'o', task, world.context())).runId;
      };
      const handOver = async (created_by: string): Promise<void> => {
        await updateTaskCommand({ ...world.command('o'), changes: { created_by } });
      };
      /** As its worker and the semaphore would. */
      const end = async (runId: string): Promise<void> => {
        await all.end(runId);
        for (const owner of await ownersOf(world.store, 'o')) {
          await changeKey(world.store, overlapKey('o', owner), world.context(), (state) => ({
            events: releaseKey(state, runId),
            answer: null,
          }));
        }
        await world.clock.advance(5000);
      };
      const first = await run();
      await handOver('agent-2');
      await all.start('one');
      await all.request('b', 'o', { from: START - minute, to: START });
      await world.clock.advance(5000);
      expect(await all.requested()).to.deep.equal([]);
      await handOver('agent-3');
      const second = await run();
      await end(first);
      expect(await all.requested()).to.deep.equal([]);
      await end(second);
      expect(await all.requested()).to.deep.equal(minutes(-1, -1));
    });

    it('loses no run to runs that are requested at the same time', async () => {
      await world.createTask('o', { overlap_policy: 'queue' });
      const one = await all.start('one');
      one.store.afterAppend = async (stream) => {
        if (!stream.startsWith('backfill-')) return;
        one.store.afterAppend = () => {};
        // One run holds the task and one waits: the policy lets no other run wait.
        const task = await world.task('o');
        await requestManualRun(world.store, 'o', task, world.context());
        await requestManualRun(world.store, 'o', task, world.context());
      };
      await all.request('b', 'o', before);
      expect(await all.requested()).to.deep.equal(minutes(-9, -9));
      expect((await all.backfill('b')).progress.outcomes).to.include({ skipped: 0 });
    });

    it('runs all of them, one by one', async () => {
      await world.createTask('o', { overlap_policy: 'skip' });
      await all.start('one');
      await all.request('b', 'o', before, { concurrency: 5 });
      expect(await all.endAll()).to.equal(1);
      expect(await all.requested()).to.deep.equal(minutes(-9, 0));
      expect((await all.backfill('b')).progress.outcomes).to.include({ succeeded: 10, skipped: 0 });
    });
  });

  it('is executed once if two processes believe they are the leader', async () => {
    await all.start('one', { lead: 'a' });
    await all.start('two', { lead: 'b' });
    await all.request('b', 't', before, { concurrency: 4 });
    expect(await all.endAll()).to.be.at.most(4);
    const requested = await all.requested();
    expect([...requested].sort()).to.deep.equal(minutes(-9, 0));
    expect((await all.backfill('b')).progress).to.deep.include({
      requested: 10,
      unfinished: [],
      outcomes: { succeeded: 10, failed: 0, canceled: 0, skipped: 0 },
    });
  });

  it('is left to the leader until the leader is gone', async () => {
    const one = await all.start('one');
    const two = await all.start('two');
    await all.request('b', 't', before);
    expect(two.backfills.size).to.equal(1);
    one.kill();
    await world.clock.advance(4000);
    await all.endAll();
    expect(await all.requested()).to.deep.equal(minutes(-9, 0));
    expect((await all.backfill('b')).state).to.equal('completed');
  });
});
