import { expect } from 'chai';
import { toIso } from '../../../domain/clock.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import {
  cancelTaskCommand,
  pauseTaskCommand,
  resumeTaskCommand,
  snoozeTaskCommand,
  updateTaskCommand,
} from '../../../domain/tasks/task-commands.ts';
import { dueProjection } from '../../../projections/views/due.ts';
import { minute, minutes, START, World } from '../scheduler-world.ts';
import { ShiftedClock } from '../../support/shifted-clock.ts';

const hour = 60 * minute;

describe('the scheduler', () => {
  let world: World;

  beforeEach(async () => {
    world = await World.open();
  });

  afterEach(async () => {
    await world.close();
  });

  it('fires a minutely task once each minute of a day, with one run each', async function () {
    this.timeout(180_000);
    await world.createTask('t');
    await world.start('one');
    await world.clock.advance(24 * hour);
    const { fired, skipped, requested } = await world.outcome('t');
    expect(fired).to.deep.equal(minutes(1, 1440));
    expect(requested).to.deep.equal(fired);
    expect(skipped).to.deep.equal([]);
  });

  it('fires nothing early', async () => {
    await world.createTask('t');
    await world.start('one');
    await world.clock.advance(minute - 1);
    expect((await world.outcome('t')).fired).to.deep.equal([]);
    await world.clock.advance(1);
    expect((await world.outcome('t')).fired).to.deep.equal(minutes(1, 1));
  });

  it('waits for a fire beyond the range of timers', async () => {
    await world.createTask('t', { schedule_kind: 'once', schedule_expr: '2026-08-02T00:00:00Z' });
    await world.start('one');
    await world.clock.advanceTo('2026-08-01T23:59:59.999Z');
    expect((await world.outcome('t')).fired).to.deep.equal([]);
    await world.clock.advanceTo('2026-08-02T00:00:00.000Z');
    expect((await world.outcome('t')).fired).to.deep.equal(['2026-08-02T00:00:00.000Z']);
  });

  it('follows the commands on a task', async () => {
    await world.start('one');
    await world.createTask('t');
    await world.clock.advance(2 * minute);
    await pauseTaskCommand(world.command('t'));
    await world.clock.advance(2 * minute);
    await resumeTaskCommand({ ...world.command('t'), missed: 'skip' });
    await world.clock.advance(minute);
    await snoozeTaskCommand({ ...world.command('t'), delaySeconds: 30 });
    await world.clock.advance(minute);
    expect((await world.outcome('t')).fired).to.deep.equal([...minutes(1, 2), ...minutes(5, 5)]);
    await world.clock.advance(30_000);
    expect((await world.outcome('t')).fired.at(-1)).to.equal(toIso(START + 6 * minute));
    await updateTaskCommand({ ...world.command('t'), changes: { schedule_expr: '*/10 * * * *' } });
    await world.clock.advance(10 * minute);
    expect((await world.outcome('t')).fired.at(-1)).to.equal(toIso(START + 10 * minute));
    await cancelTaskCommand(world.command('t'));
    await world.clock.advance(hour);
    const { fired, skipped, requested } = await world.outcome('t');
    expect(fired).to.have.lengthOf(5);
    expect(skipped).to.deep.equal(['paused 2']);
    expect(requested).to.deep.equal(fired);
  });

  it('decides many tasks due at one instant once each', async () => {
    for (let n = 0; n < 150; n += 1) await world.createTask(`t${n}`);
    await world.start('one');
    await world.clock.advance(2 * minute);
    const events = await world.events('fires-');
    expect(events).to.have.lengthOf(300);
    expect(new Set(events.map(({ stream, revision }) => `${stream} ${revision}`)).size).to.equal(
      300,
    );
  });

  it("decides by a task's state when it is due, not when it was prepared", async () => {
    await world.createTask('paused');
    await world.createTask('changed');
    await world.createTask('later');
    await world.start('one');
    // Half a second before, all decisions are prepared.
    await world.clock.advance(minute - 100);
    await pauseTaskCommand(world.command('paused'));
    await updateTaskCommand({ ...world.command('changed'), changes: { priority: 1 } });
    await updateTaskCommand({
      ...world.command('later'),
      changes: { schedule_expr: '*/2 * * * *' },
    });
    await world.clock.advance(minute);
    expect((await world.outcome('paused')).fired).to.deep.equal([]);
    expect((await world.outcome('changed')).fired).to.deep.equal(minutes(1, 1));
    expect((await world.outcome('later')).fired).to.deep.equal([]);
    const [request] = await world.events('run-');
    expect(request?.data).to.include({ priority: 1, task_revision: 1 });
  });

  it('applies the misfire policy after an outage', async () => {
    await world.createTask('t');
    world.clock.jumpTo(START + 3 * hour + 30_000);
    await world.start('one');
    const { fired, skipped } = await world.outcome('t');
    expect(fired).to.deep.equal(minutes(180, 180));
    expect(skipped).to.deep.equal(['missed 179']);
  });

  it('decides nothing twice when the clock is set back', async () => {
    await world.createTask('t');
    await world.start('one');
    await world.clock.advance(10 * minute);
    world.clock.jumpTo(START + 5 * minute);
    await world.clock.advance(4 * minute);
    expect((await world.outcome('t')).fired).to.deep.equal(minutes(1, 10));
    await world.clock.advance(3 * minute);
    expect((await world.outcome('t')).fired).to.deep.equal(minutes(1, 12));
  });

  describe('with several processes', () => {
    const both = async (skew: number): Promise<void> => {
      for (const task of ['a', 'b', 'c']) await world.createTask(task);
      await world.start('one', { lease: 10 * minute });
      const clock = new ShiftedClock(world.clock, { shift: skew });
      await world.start('two', { lease: 10 * minute, clock });
      await world.clock.advance(2 * hour);
      for (const task of ['a', 'b', 'c']) {
        const { fired, requested } = await world.outcome(task);
        const last = Math.floor((2 * hour + Math.max(0, skew)) / minute);
        expect(fired.slice(0, 120)).to.deep.equal(minutes(1, 120));
        expect(fired.length).to.be.at.most(last);
        expect(requested).to.deep.equal(fired);
      }
    };

    it('decides each nominal time once', async function () {
      this.timeout(180_000);
      await both(0);
    });

    it('decides each nominal time once when the clocks differ', async function () {
      this.timeout(180_000);
      await both(2_400);
      expect((await world.events('fires-')).length).to.be.at.least(360);
    });

    it('continues on the other process when the leader dies', async () => {
      await world.createTask('t');
      const one = await world.start('one', { lease: 3000 });
      await world.start('two', { lease: 3000 });
      await world.clock.advance(2 * minute);
      expect(one.leadership.leads).to.equal(true);
      one.kill();
      await world.clock.advance(3 * minute + 10_000);
      const { fired, requested, skipped } = await world.outcome('t');
      expect(fired).to.deep.equal(minutes(1, 5));
      expect(requested).to.deep.equal(fired);
      expect(skipped).to.deep.equal([]);
    });

    it('decides races by the append when there is no leader', async () => {
      await world.createTask('t');
      // No process leads: an idle owner has the lease.
      await world.coordination.acquire('scheduler', 'nobody', 24 * hour);
      await world.start('one', { lease: 10 * minute });
      await world.start('two', { lease: 10 * minute });
      await world.clock.advance(10 * minute + 5000);
      const { fired, requested } = await world.outcome('t');
      expect(fired).to.deep.equal(minutes(1, 10));
      expect(requested).to.deep.equal(fired);
    });
  });

  describe('that restarts', () => {
    it('continues from the due view', async () => {
      await world.createTask('t');
      const one = await world.start('one');
      await world.clock.advance(5 * minute);
      await one.stop();
      await world.project([dueProjection]);
      await world.createTask('later');
      await pauseTaskCommand(world.command('t'));
      await world.start('two');
      await world.clock.advance(2 * minute);
      expect((await world.outcome('t')).fired).to.deep.equal(minutes(1, 5));
      expect((await world.outcome('later')).fired).to.deep.equal(minutes(6, 7));
    });

    it('continues from the log alone', async () => {
      await world.createTask('t');
      const one = await world.start('one');
      await world.clock.advance(5 * minute);
      one.kill();
      await world.clock.advance(20_000);
      await world.start('two');
      await world.clock.advance(2 * minute);
      expect((await world.outcome('t')).fired).to.deep.equal(minutes(1, 7));
    });

    it('drops tasks that were canceled while it did not follow the log', async () => {
      await world.createTask('t');
      const one = await world.start('one');
      // The subscription breaks off at this event, which the view has by then.
      let broken = 0;
      one.store.onMessage = async (message, prefixes) => {
        if (!prefixes.includes('fires-') || message.kind !== 'events' || broken > 0) return;
        broken += 1;
        await world.project([dueProjection]);
        throw new EventStoreError('UNAVAILABLE', 'the subscription ended');
      };
      await cancelTaskCommand(world.command('t'));
      await world.idle();
      expect(broken).to.equal(1);
      expect(one.failures).to.have.lengthOf(1);
      expect(one.index.size).to.equal(0);
      await world.clock.advance(5 * minute);
      expect((await world.outcome('t')).fired).to.deep.equal([]);
    });
  });

  describe('whose log fails', () => {
    it('retries after the log was unavailable', async () => {
      await world.createTask('t');
      const one = await world.start('one');
      let failures = 3;
      one.store.onAppend = (stream) => {
        if (!stream.startsWith('fires-') || failures === 0) return;
        failures -= 1;
        throw new EventStoreError('UNAVAILABLE', 'away');
      };
      await world.clock.advance(minute + 1600);
      expect((await world.outcome('t')).fired).to.deep.equal(minutes(1, 1));
      await world.clock.advance(minute);
      expect((await world.outcome('t')).requested).to.deep.equal(minutes(1, 2));
    });

    it('decides once when the response is lost', async () => {
      await world.createTask('t');
      const one = await world.start('one', { requester: true });
      let lost = false;
      one.store.afterAppend = (stream) => {
        if (lost || !stream.startsWith('fires-')) return;
        lost = true;
        throw new EventStoreError('OUTCOME_UNKNOWN', 'the response was lost');
      };
      await world.clock.advance(minute + 5000);
      const { fired, requested } = await world.outcome('t');
      expect(lost).to.equal(true);
      expect(fired).to.deep.equal(minutes(1, 1));
      expect(requested).to.deep.equal(fired);
    });
  });
});
