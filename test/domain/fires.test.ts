import { expect } from 'chai';
import { fromIso } from '../../domain/clock.ts';
import { jitterOf } from '../../domain/fires.ts';
import { scheduledRunId } from '../../domain/ids.ts';
import { nextRunOf } from '../../domain/rhythm.ts';
import { minute, Story, TASK } from './rhythm-story.ts';

const hour = 60 * minute;

describe("deciding a task's fires", () => {
  describe('in time', () => {
    it('decides nothing before the next fire', () => {
      const story = new Story().pass(minute - 1);
      expect(story.look().events).to.deep.equal([]);
    });

    it('fires at the nominal time, and says what follows', () => {
      const story = new Story().pass(minute);
      const { events, runs } = story.look();
      expect(events).to.deep.equal([
        {
          type: 'Fired',
          data: {
            nominal: '2026-03-02T08:01:00.000Z',
            run_id: scheduledRunId(TASK, '2026-03-02T08:01:00.000Z'),
            next_fire_at: '2026-03-02T08:02:00.000Z',
            task_revision: 0,
            fire_count: 1,
          },
        },
      ]);
      expect(runs).to.have.lengthOf(1);
      expect(runs[0]?.request).to.include({
        trigger: 'schedule',
        scheduled_for: '2026-03-02T08:01:00.000Z',
        run_at: '2026-03-02T08:01:00.000Z',
        task_revision: 0,
        priority: 5,
      });
      expect(story.look().events).to.deep.equal([]);
    });

    it('fires each of those within grace', () => {
      const story = new Story({ misfire_grace_seconds: 180 }).pass(3 * minute + 500).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
      expect(story.next).to.equal('08:04:00');
    });

    it('counts a fire as in time that is late by just the grace', () => {
      const story = new Story({ misfire_policy: 'skip', misfire_grace_seconds: 60 });
      expect(story.pass(2 * minute).lookAll().fired).to.deep.equal(['08:01:00', '08:02:00']);
      const later = new Story({ misfire_policy: 'skip', misfire_grace_seconds: 60 });
      later.pass(2 * minute + 1).lookAll();
      expect(later.fired).to.deep.equal(['08:02:00']);
      expect(later.skipped).to.deep.equal(['missed 08:01:00-08:01:00 (1)']);
    });

    it('lets runs start later by the jitter, the same for all fires of a task', () => {
      const story = new Story({ jitter_seconds: 40 });
      const jitter = jitterOf(TASK, 40);
      expect(jitter).to.be.within(1, 40_000);
      for (let n = 0; n < 3; n += 1) {
        const [run] = story.pass(minute).look().runs;
        const { run_at, scheduled_for } = run?.request ?? { run_at: '', scheduled_for: '' };
        expect(fromIso(run_at) - fromIso(scheduled_for ?? '')).to.equal(jitter);
      }
      expect(jitterOf(TASK, 0)).to.equal(0);
    });
  });

  describe('after an outage', () => {
    it('runs the newest alone under `latest`, and records the older as one span', () => {
      const story = new Story({ schedule_expr: '0 * * * *' })
        .pass(5 * hour + 30 * minute)
        .lookAll();
      expect(story.fired).to.deep.equal(['13:00:00']);
      expect(story.skipped).to.deep.equal(['missed 09:00:00-12:00:00 (4)']);
      expect(story.next).to.equal('14:00:00');
    });

    it('runs none of the late ones under `latest` where one within grace runs', () => {
      const story = new Story().pass(10 * minute + 1000).lookAll();
      expect(story.fired).to.deep.equal(['08:10:00']);
      expect(story.skipped).to.deep.equal(['missed 08:01:00-08:09:00 (9)']);
    });

    it('records all of the late ones under `skip`', () => {
      const story = new Story({ misfire_policy: 'skip', schedule_expr: '0 * * * *' });
      story.pass(5 * hour + 30 * minute).lookAll();
      expect(story.fired).to.deep.equal([]);
      expect(story.skipped).to.deep.equal(['missed 09:00:00-13:00:00 (5)']);
      expect(story.next).to.equal('14:00:00');
    });

    it('runs each under `all`', () => {
      const story = new Story({ misfire_policy: 'all', schedule_expr: '0 * * * *' });
      story.pass(5 * hour + 30 * minute).lookAll();
      expect(story.fired).to.deep.equal([
        '09:00:00',
        '10:00:00',
        '11:00:00',
        '12:00:00',
        '13:00:00',
      ]);
      expect(story.skipped).to.deep.equal([]);
    });

    it('runs the newest hundred under `all`, and records the older; those in time run too', () => {
      const story = new Story({ misfire_policy: 'all' }).pass(8 * hour + 500);
      expect(story.look().runs).to.have.lengthOf(100);
      story.lookAll();
      // 480 fires: one is within grace (16:00), of the others 100 run.
      expect(story.fired).to.have.lengthOf(101);
      expect(story.skipped).to.deep.equal(['missed 08:01:00-14:19:00 (379)']);
    });

    it('decides a hundred at a time where all are within grace', () => {
      const story = new Story({ misfire_grace_seconds: 86_400 }).pass(4 * hour);
      expect(story.look().runs).to.have.lengthOf(100);
      expect(story.next).to.equal('09:41:00');
      story.lookAll();
      expect(new Set(story.fired).size).to.equal(240);
      expect(story.skipped).to.deep.equal([]);
    });

    it('never asks for a rule that fires no more', () => {
      const once = new Story({ schedule_kind: 'once', schedule_expr: '2026-03-02T08:30:00Z' });
      once.pass(2 * hour).lookAll();
      expect(once.fired).to.deep.equal(['08:30:00']);
      expect(once.next).to.equal(null);
      const skipped = new Story({
        schedule_kind: 'once',
        schedule_expr: '2026-03-02T08:30:00Z',
        misfire_policy: 'skip',
      });
      skipped.pass(2 * hour).lookAll();
      expect(skipped.skipped).to.deep.equal(['missed 08:30:00-08:30:00 (1)']);
      expect(skipped.next).to.equal(null);
      expect(skipped.look().events).to.deep.equal([]);
    });
  });

  describe('within bounds', () => {
    it('fires nothing after `ends_at`', () => {
      const story = new Story({ ends_at: '2026-03-02T08:02:30.000Z' });
      for (let n = 0; n < 5; n += 1) story.pass(minute).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00']);
      expect(story.next).to.equal(null);
    });

    it('fires nothing before `starts_at`', () => {
      const story = new Story({ starts_at: '2026-03-02T08:02:30.000Z' });
      for (let n = 0; n < 4; n += 1) story.pass(minute).lookAll();
      expect(story.fired).to.deep.equal(['08:03:00', '08:04:00']);
    });

    it('requests as many fires as `max_runs`, and then none is ahead', () => {
      const story = new Story({ max_runs: 3 });
      for (let n = 0; n < 5; n += 1) story.pass(minute).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
      expect(story.next).to.equal(null);
    });

    it('counts what is made up towards `max_runs`, the oldest first', () => {
      const story = new Story({ max_runs: 3, misfire_policy: 'all' }).pass(10 * minute).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
      expect(story.next).to.equal(null);
    });

    it('records what may not run any more where `max_runs` was made smaller than what had run', () => {
      const story = new Story();
      for (let n = 0; n < 5; n += 1) story.pass(minute).lookAll();
      story.update({ max_runs: 3 }).pass(minute).lookAll();
      expect(story.fired).to.have.lengthOf(5);
      expect(story.skipped).to.deep.equal(['bounds 08:06:00-08:06:00 (1)']);
      expect(story.next).to.equal(null);
      expect(story.look().events).to.deep.equal([]);
    });

    it('goes on where `max_runs` was made larger', () => {
      const story = new Story({ max_runs: 1 }).pass(minute).lookAll();
      expect(story.next).to.equal(null);
      story.update({ max_runs: 2 }).pass(minute).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00']);
      expect(story.next).to.equal(null);
    });
  });

  describe('of a task that was paused', () => {
    const paused = (): Story => {
      const story = new Story().pass(minute).lookAll().pass(30_000).pause();
      return story.pass(3 * minute).lookAll();
    };

    it('fires nothing while it is paused', () => {
      expect(paused().fired).to.deep.equal(['08:01:00']);
    });

    it('records what was held back', () => {
      const story = paused().resume('skip').lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      expect(story.skipped).to.deep.equal(['paused 08:02:00-08:04:00 (3)']);
      expect(story.pass(minute).lookAll().fired).to.deep.equal(['08:01:00', '08:05:00']);
    });

    it('runs the newest of what was held back', () => {
      const story = paused().resume('latest').lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:04:00']);
      expect(story.skipped).to.deep.equal(['paused 08:02:00-08:03:00 (2)']);
    });

    it('runs all of what was held back', () => {
      const story = paused().resume('all').lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00', '08:04:00']);
      expect(story.skipped).to.deep.equal([]);
    });

    it('has nothing to record where nothing was held back', () => {
      const story = new Story().pass(10_000).pause().pass(10_000).resume('all');
      expect(story.lookAll().firesEvents).to.deep.equal([]);
      expect(story.pass(40_000).lookAll().fired).to.deep.equal(['08:01:00']);
    });

    it('decides what two pauses held back, each as its resume said', () => {
      const story = paused()
        .resume('skip')
        .pass(10_000)
        .pause()
        .pass(2 * minute)
        .resume('all');
      story.lookAll();
      expect(story.skipped).to.deep.equal(['paused 08:02:00-08:04:00 (3)']);
      expect(story.fired).to.deep.equal(['08:01:00', '08:05:00', '08:06:00']);
    });

    it('decides by the resume also what it held back under the rule before', () => {
      const story = paused()
        .update({ schedule_expr: '30 * * * * *' })
        .pass(2 * minute);
      story.resume('all').lookAll();
      expect(story.fired).to.deep.equal([
        '08:01:00',
        '08:02:00',
        '08:03:00',
        '08:04:00',
        '08:05:30',
        '08:06:30',
      ]);
    });

    it('drops a snooze with the pause, and records the fire that it put off', () => {
      const story = new Story({ schedule_expr: '0 * * * *' }).snooze(2 * 3600).pause();
      story
        .pass(90 * minute)
        .resume('skip')
        .lookAll();
      expect(story.skipped).to.deep.equal(['paused 09:00:00-09:00:00 (1)']);
      expect(story.next).to.equal('10:00:00');
    });
  });

  describe('of a task that was snoozed', () => {
    it('runs the fire later, as itself, and records those that came due meanwhile', () => {
      const story = new Story().snooze(150);
      expect(nextRunOf(story.rhythm)).to.equal('2026-03-02T08:03:30.000Z');
      expect(story.pass(3 * minute).look().events).to.deep.equal([]);
      const { runs } = story.pass(30_000).look();
      expect(runs[0]?.request).to.include({
        scheduled_for: '2026-03-02T08:01:00.000Z',
        run_at: '2026-03-02T08:03:30.000Z',
      });
      expect(story.fired).to.deep.equal(['08:01:00']);
      expect(story.skipped).to.deep.equal(['snoozed 08:02:00-08:03:00 (2)']);
      expect(story.next).to.equal('08:04:00');
    });

    it('records also the fire that lies on the moment itself', () => {
      const story = new Story()
        .snooze(120)
        .pass(3 * minute)
        .lookAll();
      expect(story.skipped).to.deep.equal(['snoozed 08:02:00-08:03:00 (2)']);
      expect(story.next).to.equal('08:04:00');
    });

    it('adds up', () => {
      const story = new Story().snooze(30).pass(70_000).snooze(60).pass(19_999);
      expect(story.look().events).to.deep.equal([]);
      story.pass(60_001).lookAll();
      expect(story.fired[0]).to.equal('08:01:00');
      expect(story.skipped).to.deep.equal(['snoozed 08:02:00-08:02:00 (1)']);
    });

    it('runs by the rule again after it', () => {
      const story = new Story().snooze(30).pass(90_000).lookAll().pass(30_000).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00']);
    });

    it('loses the snooze to a new rule, and what it had put off is late', () => {
      const story = new Story({ misfire_policy: 'skip', misfire_grace_seconds: 0 }).snooze(600);
      story
        .pass(2 * minute + 1)
        .update({ schedule_expr: '0 * * * *' })
        .lookAll();
      expect(story.skipped).to.deep.equal(['missed 08:01:00-08:02:00 (2)']);
      expect(story.next).to.equal('09:00:00');
    });

    it('goes by the misfire policy when even the later time is long past', () => {
      const skip = new Story({ misfire_policy: 'skip', schedule_expr: '0 * * * *' }).snooze(60);
      skip.pass(90 * minute).lookAll();
      expect(skip.fired).to.deep.equal([]);
      expect(skip.skipped).to.deep.equal(['missed 09:00:00-09:00:00 (1)']);
      const latest = new Story({ schedule_expr: '0 * * * *' }).snooze(60);
      latest.pass(3 * hour + 30 * minute).lookAll();
      expect(latest.fired).to.deep.equal(['11:00:00']);
      const only = new Story({ schedule_expr: '0 * * * *' }).snooze(60);
      only.pass(90 * minute).lookAll();
      expect(only.fired).to.deep.equal(['09:00:00']);
    });

    it('counts towards `max_runs` once', () => {
      const story = new Story({ max_runs: 1 })
        .snooze(150)
        .pass(4 * minute)
        .lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      expect(story.next).to.equal(null);
    });
  });

  describe('of a task whose rule was changed', () => {
    it('runs what was due and undecided by the rule before, if it is within grace', () => {
      const story = new Story().pass(minute + 20).update({ schedule_expr: '30 * * * * *' });
      story.lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      story.pass(30_000).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:01:30']);
    });

    it('puts what was missed by the rule before through its own misfire policy', () => {
      for (const [misfire_policy, fired, skipped] of [
        ['skip', [], ['missed 09:00:00-12:00:00 (4)']],
        ['latest', ['12:00:00'], ['missed 09:00:00-11:00:00 (3)']],
        ['all', ['09:00:00', '10:00:00', '11:00:00', '12:00:00'], []],
      ] as const) {
        const story = new Story({ misfire_policy, schedule_expr: '0 * * * *' });
        story
          .pass(4.5 * hour)
          .update({ schedule_expr: '45 * * * *' })
          .lookAll();
        expect(story.fired, misfire_policy).to.deep.equal(fired);
        expect(story.skipped, misfire_policy).to.deep.equal(skipped);
        expect(story.next).to.equal('12:45:00');
      }
    });

    it('decides by each of several rules what came due by it', () => {
      const story = new Story({ schedule_expr: '0 * * * *', misfire_policy: 'all' });
      story.pass(90 * minute).update({ schedule_expr: '40 * * * *' });
      story.pass(30 * minute).update({ schedule_expr: '50 * * * *' });
      story.lookAll();
      expect(story.fired).to.deep.equal(['09:00:00', '09:40:00']);
      expect(story.next).to.equal('10:50:00');
    });

    it('decides all of what is owed, also over several decisions', () => {
      const story = new Story({ misfire_grace_seconds: 86_400 });
      story.pass(4 * hour + 1).update({ schedule_expr: '30 * * * * *' });
      expect(story.look().runs).to.have.lengthOf(100);
      story.lookAll();
      expect(new Set(story.fired).size).to.equal(240);
      expect(story.next).to.equal('12:00:30');
    });

    it('fires nothing twice when a scheduler that knew nothing of the change was faster', () => {
      const story = new Story().pass(minute + 20);
      const decision = story.decision();
      story.update({ schedule_expr: '30 * * * * *' });
      story.write(decision);
      story.lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      expect(story.next).to.equal('08:01:30');
    });

    it('becomes a task without fires', () => {
      const story = new Story().pass(minute + 20);
      story.update({ schedule_kind: 'event', schedule_expr: 'x.#' }).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      expect(story.next).to.equal(null);
    });
  });

  it('does not bring a fire back that was decided while it was being snoozed', () => {
    const story = new Story().pass(minute);
    const before = story.rhythm;
    story.look();
    story.snooze(600, before);
    expect(story.next).to.equal('08:02:00');
    story.pass(15 * minute).lookAll();
    expect(story.fired.filter((time) => time === '08:01:00')).to.have.lengthOf(1);
  });

  it('decides nothing of a canceled task, also what was owed', () => {
    const story = new Story().pause().pass(hour).resume('all').cancel();
    expect(story.look().events).to.deep.equal([]);
    expect(story.next).to.equal(null);
  });

  it('goes by what the rule says now where the written fire is none (any more)', () => {
    const story = new Story({ schedule_expr: '0 9 * * *' });
    // As if another tz database had moved it: written for 08:30, the rule says 09:00.
    const moved = { ...story.rhythm.set, next_fire_at: '2026-03-02T08:30:00.000Z' };
    story.rhythm = { ...story.rhythm, set: moved };
    const { events } = story.pass(30 * minute).look();
    expect(events).to.have.lengthOf(1);
    expect(events[0]).to.deep.include({ type: 'NextFireCorrected' });
    expect(story.next).to.equal('09:00:00');
    story.pass(30 * minute).lookAll();
    expect(story.fired).to.deep.equal(['09:00:00']);
  });
});
