import { expect } from 'chai';
import { fromIso } from '../../../domain/clock.ts';
import { scheduledRunId } from '../../../domain/ids.ts';
import { jitterOf } from '../../../domain/tasks/jitter.ts';
import { minute, Story, TASK } from './schedule-story.ts';

const hour = 60 * minute;

describe("deciding a task's fires", () => {
  describe('in time', () => {
    it('decides nothing before the next fire', () => {
      const story = new Story().pass(minute - 1);
      expect(story.look().events).to.deep.equal([]);
    });

    it('fires at the nominal time, and names the next fire', () => {
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

    it('fires each nominal time that is within its grace', () => {
      const story = new Story({ misfire_grace_seconds: 180 }).pass(3 * minute + 500).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
      expect(story.next).to.equal('08:04:00');
    });

    it('counts a fire as in time if it is late by exactly the grace', () => {
      const story = new Story({ misfire_policy: 'skip', misfire_grace_seconds: 60 });
      expect(story.pass(2 * minute).lookAll().fired).to.deep.equal(['08:01:00', '08:02:00']);
      const later = new Story({ misfire_policy: 'skip', misfire_grace_seconds: 60 });
      later.pass(2 * minute + 1).lookAll();
      expect(later.fired).to.deep.equal(['08:02:00']);
      expect(later.skipped).to.deep.equal(['missed 08:01:00-08:01:00 (1)']);
    });

    it('counts a fire as in time if it is less than a second late, even with no grace', () => {
      const fields = { misfire_policy: 'skip', misfire_grace_seconds: 0 } as const;
      const story = new Story(fields).pass(minute + 999).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00']);
      const late = new Story(fields).pass(minute + 1000).lookAll();
      expect(late.skipped).to.deep.equal(['missed 08:01:00-08:01:00 (1)']);
    });

    it('lets runs start later by the jitter, the same for all fires of a task', () => {
      const story = new Story({ jitter_seconds: 40 });
      const jitter = jitterOf(TASK, 40_000);
      expect(jitter).to.be.within(1, 40_000);
      for (let n = 0; n < 3; n += 1) {
        const [run] = story.pass(minute).look().runs;
        const { run_at, scheduled_for } = run?.request ?? { run_at: '', scheduled_for: '' };
        expect(fromIso(run_at) - fromIso(scheduled_for ?? '')).to.equal(jitter);
      }
      expect(jitterOf(TASK, 0)).to.equal(0);
    });

    it('lets each run start before the next fire if the jitter is longer than the interval', () => {
      const story = new Story({ jitter_seconds: 3600, schedule_expr: '0,50 * * * *' });
      const after = (fire: string): number => {
        const [run] = story.look().runs;
        expect(run?.request.scheduled_for).to.equal(`2026-03-02T${fire}:00.000Z`);
        return fromIso(run?.request.run_at ?? '') - story.now;
      };
      story.pass(50 * minute);
      expect(after('08:50')).to.equal(jitterOf(TASK, 10 * minute));
      story.pass(10 * minute);
      expect(after('09:00')).to.equal(jitterOf(TASK, 50 * minute));
      expect(jitterOf(TASK, 10 * minute)).to.be.within(1, 10 * minute - 1);
    });

    it('bounds the jitter of a snoozed fire by the fire after its later time', () => {
      const story = new Story({ jitter_seconds: 3600, schedule_expr: '*/10 * * * *' });
      story.snooze(900).pass(25 * minute);
      const [run] = story.look().runs;
      const { run_at, scheduled_for } = run?.request ?? {};
      expect(scheduled_for).to.equal('2026-03-02T08:10:00.000Z');
      expect(fromIso(run_at ?? '') - story.now).to.equal(jitterOf(TASK, 5 * minute));
    });

    it('uses the whole jitter if no fire follows', () => {
      const at = '2026-03-02T08:01:00.000Z';
      const once = { schedule_kind: 'once', schedule_expr: at } as const;
      const [run] = new Story({ ...once, jitter_seconds: 3600 }).pass(minute).look().runs;
      expect(fromIso(run?.request.run_at ?? '') - fromIso(at)).to.equal(
        jitterOf(TASK, 60 * minute),
      );
    });
  });

  describe('after an outage', () => {
    it('runs only the newest under `latest`, and skips the older ones as one span', () => {
      const story = new Story({ schedule_expr: '0 * * * *' })
        .pass(5 * hour + 30 * minute)
        .lookAll();
      expect(story.fired).to.deep.equal(['13:00:00']);
      expect(story.skipped).to.deep.equal(['missed 09:00:00-12:00:00 (4)']);
      expect(story.next).to.equal('14:00:00');
    });

    it('runs no late fire under `latest` if one within its grace runs', () => {
      const story = new Story().pass(10 * minute + 1000).lookAll();
      expect(story.fired).to.deep.equal(['08:10:00']);
      expect(story.skipped).to.deep.equal(['missed 08:01:00-08:09:00 (9)']);
    });

    it('skips all late fires under `skip`', () => {
      const story = new Story({ misfire_policy: 'skip', schedule_expr: '0 * * * *' });
      story.pass(5 * hour + 30 * minute).lookAll();
      expect(story.fired).to.deep.equal([]);
      expect(story.skipped).to.deep.equal(['missed 09:00:00-13:00:00 (5)']);
      expect(story.next).to.equal('14:00:00');
    });

    it('runs each late fire under `all`', () => {
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

    it('runs the newest hundred under `all`, skips the older ones, and runs those in time', () => {
      const story = new Story({ misfire_policy: 'all' }).pass(8 * hour + 500);
      expect(story.look().runs).to.have.lengthOf(100);
      story.lookAll();
      // 480 fires: one is within grace (16:00), of the others 100 run.
      expect(story.fired).to.have.lengthOf(101);
      expect(story.skipped).to.deep.equal(['missed 08:01:00-14:19:00 (379)']);
    });

    it('decides a hundred fires at a time if all are within their grace', () => {
      const story = new Story({ misfire_grace_seconds: 86_400 }).pass(4 * hour);
      expect(story.look().runs).to.have.lengthOf(100);
      expect(story.next).to.equal('09:41:00');
      story.lookAll();
      expect(new Set(story.fired).size).to.equal(240);
      expect(story.skipped).to.deep.equal([]);
    });

    it('never queries a rule that will not fire again', () => {
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

    it('requests `max_runs` fires, and then has no next one', () => {
      const story = new Story({ max_runs: 3 });
      for (let n = 0; n < 5; n += 1) story.pass(minute).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
      expect(story.next).to.equal(null);
    });

    it('counts fires that run late towards `max_runs`, the oldest first', () => {
      const story = new Story({ max_runs: 3, misfire_policy: 'all' }).pass(10 * minute).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
      expect(story.next).to.equal(null);
    });

    it('skips what may no longer run after `max_runs` was lowered', () => {
      const story = new Story();
      for (let n = 0; n < 5; n += 1) story.pass(minute).lookAll();
      story.update({ max_runs: 3 }).pass(minute).lookAll();
      expect(story.fired).to.have.lengthOf(5);
      expect(story.skipped).to.deep.equal(['bounds 08:06:00-08:06:00 (1)']);
      expect(story.next).to.equal(null);
      expect(story.look().events).to.deep.equal([]);
    });

    it('continues after `max_runs` was raised', () => {
      const story = new Story({ max_runs: 1 }).pass(minute).lookAll();
      expect(story.next).to.equal(null);
      story.update({ max_runs: 2 }).pass(minute).lookAll();
      expect(story.fired).to.deep.equal(['08:01:00', '08:02:00']);
      expect(story.next).to.equal(null);
    });
  });

  it('decides nothing of a canceled task, not even its backlog', () => {
    const story = new Story().pause().pass(hour).resume('all').cancel();
    expect(story.look().events).to.deep.equal([]);
    expect(story.next).to.equal(null);
  });

  it('follows the present rule if the recorded fire does not belong to it', () => {
    const story = new Story({ schedule_expr: '0 9 * * *' });
    // As if another tz database had moved the fire, from the recorded 08:30 to 09:00.
    const moved = { ...story.state.set, next_fire_at: '2026-03-02T08:30:00.000Z' };
    story.state = { ...story.state, set: moved };
    const { events } = story.pass(30 * minute).look();
    expect(events).to.have.lengthOf(1);
    expect(events[0]).to.deep.include({ type: 'NextFireCorrected' });
    expect(story.next).to.equal('09:00:00');
    story.pass(30 * minute).lookAll();
    expect(story.fired).to.deep.equal(['09:00:00']);
  });
});
