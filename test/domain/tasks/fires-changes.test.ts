import { expect } from 'chai';
import { nextRunOf } from '../../../domain/tasks/schedule-state.ts';
import { minute, Story } from './schedule-story.ts';

const hour = 60 * minute;

describe("deciding a task's fires after a change", () => {
  describe('of a task that was snoozed', () => {
    it('runs the fire later under its nominal time, and skips those due in the meantime', () => {
      const story = new Story().snooze(150);
      expect(nextRunOf(story.state)).to.equal('2026-03-02T08:03:30.000Z');
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

    it('also skips the fire at the very instant of the later run', () => {
      const story = new Story()
        .snooze(120)
        .pass(3 * minute)
        .lookAll();
      expect(story.skipped).to.deep.equal(['snoozed 08:02:00-08:03:00 (2)']);
      expect(story.next).to.equal('08:04:00');
    });

    it('adds up repeated snoozes', () => {
      const story = new Story().snooze(30).pass(70_000).snooze(60).pass(19_999);
      expect(story.look().events).to.deep.equal([]);
      story.pass(60_001).lookAll();
      expect(story.fired[0]).to.equal('08:01:00');
      expect(story.skipped).to.deep.equal(['snoozed 08:02:00-08:02:00 (1)']);
    });

    it('follows the rule again afterwards', () => {
      const story = new Story().snooze(30).pass(90_000).lookAll().pass(30_000).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00']);
    });

    it('loses the snooze to a new rule, and the snoozed fire is late', () => {
      const story = new Story({ misfire_policy: 'skip', misfire_grace_seconds: 0 }).snooze(600);
      story
        .pass(2 * minute + 1)
        .update({ schedule_expr: '0 * * * *' })
        .lookAll();
      expect(story.skipped).to.deep.equal([
        'missed 08:01:00-08:01:00 (1)',
        'snoozed 08:02:00-08:02:00 (1)',
      ]);
      expect(story.next).to.equal('09:00:00');
    });

    it('runs only the snoozed fire if a new rule ends the snooze within its grace', () => {
      const story = new Story({ schedule_expr: '*/10 * * * * *' }).snooze(45);
      story.pass(40_500).update({ schedule_expr: '0 * * * *' }).lookAll();
      expect(story.fired).to.deep.equal(['08:00:10']);
      expect(story.skipped).to.deep.equal(['snoozed 08:00:20-08:00:40 (3)']);
      expect(story.next).to.equal('09:00:00');
    });

    it('counts the snoozed fire as late from its later time if that came before the new rule', () => {
      const fields = { misfire_policy: 'skip', misfire_grace_seconds: 20 } as const;
      const story = new Story({ ...fields, schedule_expr: '*/10 * * * * *' }).snooze(45);
      story.pass(62_000).update({ schedule_expr: '0 * * * *' }).pass(10_000);
      const { runs } = story.look();
      expect(runs[0]?.request.run_at).to.equal('2026-03-02T08:00:55.000Z');
      story.lookAll();
      expect(story.fired).to.deep.equal(['08:00:10', '08:01:00']);
      expect(story.skipped).to.deep.equal(['snoozed 08:00:20-08:00:50 (4)']);
      const late = new Story({ ...fields, schedule_expr: '*/10 * * * * *' }).snooze(45);
      late.pass(62_000).update({ schedule_expr: '0 * * * *' }).pass(minute).lookAll();
      expect(late.fired).to.deep.equal([]);
      expect(late.skipped).to.deep.equal([
        'missed 08:00:10-08:00:10 (1)',
        'snoozed 08:00:20-08:00:50 (4)',
        'missed 08:01:00-08:01:00 (1)',
      ]);
    });

    it('has its snoozed fire held back by a pause at the later time, and skips those due before', () => {
      const story = new Story({ schedule_expr: '*/10 * * * * *' }).snooze(25).pass(15_000).pause();
      story.pass(32_000).resume('all').lookAll();
      expect(story.fired).to.deep.equal(['08:00:10', '08:00:40']);
      expect(story.skipped).to.deep.equal(['snoozed 08:00:20-08:00:30 (2)']);
      expect(story.next).to.equal('08:00:50');
    });

    it('decides a fire whose later time is before a pause as if there were no pause', () => {
      const story = new Story({ schedule_expr: '*/10 * * * * *' }).snooze(25).pass(42_000).pause();
      story.pass(10_000).resume('skip').lookAll();
      expect(story.fired).to.deep.equal(['08:00:10', '08:00:40']);
      expect(story.skipped).to.deep.equal([
        'snoozed 08:00:20-08:00:30 (2)',
        'paused 08:00:50-08:00:50 (1)',
      ]);
      expect(story.firesEvents).to.have.lengthOf(4);
    });

    it('follows the misfire policy when even the later time is long past', () => {
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
    it('runs what was due and undecided by the previous rule, if within its grace', () => {
      const story = new Story().pass(minute + 20).update({ schedule_expr: '30 * * * * *' });
      story.lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      story.pass(30_000).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:01:30']);
    });

    it('decides fires missed under the previous rule by the misfire policy of that rule', () => {
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

    it('follows the release of a hold during which it changed, for all fires due before', () => {
      for (const [policy, fired, skipped] of [
        ['skip', [], ['missed 09:00:00-12:00:00 (4)']],
        ['latest', ['12:00:00'], ['missed 09:00:00-11:00:00 (3)']],
        ['all', ['09:00:00', '10:00:00', '11:00:00', '12:00:00'], []],
      ] as const) {
        const misfire_policy = policy === 'skip' ? 'all' : 'skip';
        const story = new Story({ misfire_policy, schedule_expr: '0 * * * *' }).pass(4.5 * hour);
        story.update({ schedule_expr: '45 * * * *' }).release(policy).lookAll();
        expect(story.fired, policy).to.deep.equal(fired);
        expect(story.skipped, policy).to.deep.equal(skipped);
        expect(story.next).to.equal('12:45:00');
      }
    });

    it("follows the task's policy between the release of a hold and the change", () => {
      const story = new Story({ schedule_expr: '0 * * * *', misfire_policy: 'all' });
      story.pass(2.5 * hour).release('skip');
      story
        .pass(2 * hour)
        .update({ schedule_expr: '45 * * * *' })
        .lookAll();
      expect(story.skipped).to.deep.equal(['missed 09:00:00-10:00:00 (2)']);
      expect(story.fired).to.deep.equal(['11:00:00', '12:00:00']);
      expect(story.next).to.equal('12:45:00');
    });

    it('decides each fire by the rule under which it came due', () => {
      const story = new Story({ schedule_expr: '0 * * * *', misfire_policy: 'all' });
      story.pass(90 * minute).update({ schedule_expr: '40 * * * *' });
      story.pass(30 * minute).update({ schedule_expr: '50 * * * *' });
      story.lookAll();
      expect(story.fired).to.deep.equal(['09:00:00', '09:40:00']);
      expect(story.next).to.equal('10:50:00');
    });

    it('runs only the newest fire of all its rules since the last decision', () => {
      const story = new Story({ misfire_grace_seconds: 1, schedule_expr: '0 * * * *' });
      story.pass(90 * minute).update({ schedule_expr: '40 * * * *' });
      story.pass(30 * minute).update({ schedule_expr: '50 * * * *' });
      story.pass(55 * minute).lookAll();
      expect(story.fired).to.deep.equal(['10:50:00']);
      expect(story.skipped).to.deep.equal([
        'missed 09:00:00-09:00:00 (1)',
        'missed 09:40:00-09:40:00 (1)',
      ]);
    });

    it('runs the newest fire of the previous rule if later rules have none to run', () => {
      const fields = { misfire_grace_seconds: 1, schedule_expr: '0 * * * *' } as const;
      const story = new Story(fields).pass(90 * minute);
      story
        .update({ schedule_expr: '40 * * * *' })
        .pass(5 * minute)
        .lookAll();
      expect(story.fired).to.deep.equal(['09:00:00']);
      const dropped = new Story(fields).pass(90 * minute);
      dropped
        .update({ schedule_expr: '40 * * * *', misfire_policy: 'skip' })
        .pass(15 * minute)
        .lookAll();
      expect(dropped.fired).to.deep.equal(['09:00:00']);
      expect(dropped.skipped).to.deep.equal(['missed 09:40:00-09:40:00 (1)']);
    });

    it('runs only the newest fire of all its rules during a hold', () => {
      const story = new Story({ misfire_policy: 'all', schedule_expr: '0 * * * *' });
      story.pass(90 * minute).update({ schedule_expr: '40 * * * *' });
      story
        .pass(15 * minute)
        .release('latest')
        .pass(minute)
        .lookAll();
      expect(story.fired).to.deep.equal(['09:40:00']);
      expect(story.skipped).to.deep.equal(['missed 09:00:00-09:00:00 (1)']);
    });

    it('runs the newest fire before the release of a hold even if another has come due since', () => {
      const story = new Story({ misfire_policy: 'skip', schedule_expr: '0 * * * *' });
      story.pass(90 * minute).update({ schedule_expr: '40 * * * *' });
      story
        .release('latest')
        .pass(10 * minute)
        .lookAll();
      expect(story.fired).to.deep.equal(['09:00:00', '09:40:00']);
    });

    it('decides all of its backlog, even over several decisions', () => {
      const story = new Story({ misfire_grace_seconds: 86_400 });
      story.pass(4 * hour + 1).update({ schedule_expr: '30 * * * * *' });
      expect(story.look().runs).to.have.lengthOf(100);
      story.lookAll();
      expect(new Set(story.fired).size).to.equal(240);
      expect(story.next).to.equal('12:00:30');
    });

    it('fires nothing twice when a scheduler that did not know of the change was faster', () => {
      const story = new Story().pass(minute + 20);
      const decision = story.decision();
      story.update({ schedule_expr: '30 * * * * *' });
      story.write(decision);
      story.lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      expect(story.next).to.equal('08:01:30');
    });

    it('runs its due fire, and then none, if it becomes an event task', () => {
      const story = new Story().pass(minute + 20);
      story.update({ schedule_kind: 'event', schedule_expr: 'x.#' }).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      expect(story.next).to.equal(null);
    });
  });

  it('does not bring back a fire that was decided while it was being snoozed', () => {
    const story = new Story().pass(minute);
    const before = story.state;
    story.look();
    story.snooze(600, before);
    expect(story.next).to.equal('08:02:00');
    story.pass(15 * minute).lookAll();
    expect(story.fired.filter((time) => time === '08:01:00')).to.have.lengthOf(1);
  });
});
