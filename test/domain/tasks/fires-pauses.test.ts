import { expect } from 'chai';
import { nextRunOf } from '../../../domain/tasks/schedule-state.ts';
import { minute, Story } from './schedule-story.ts';

const hour = 60 * minute;

describe("deciding a task's fires around a pause", () => {
  const paused = (): Story => {
    const story = new Story().pass(minute).lookAll().pass(30_000).pause();
    return story.pass(3 * minute).lookAll();
  };

  it('fires nothing while it is paused', () => {
    expect(paused().fired).to.deep.equal(['08:01:00']);
  });

  it('skips what was held back', () => {
    const story = paused().resume('skip').lookAll();
    expect(story.fired).to.deep.equal(['08:01:00']);
    expect(story.skipped).to.deep.equal(['paused 08:02:00-08:04:00 (3)']);
    expect(story.pass(minute).lookAll().fired).to.deep.equal(['08:01:00', '08:05:00']);
  });

  it('runs fires that were due before the pause and within their grace, whatever the resume says', () => {
    const story = new Story({ misfire_grace_seconds: 3600 }).pass(3 * minute + 10_000).pause();
    story.pass(2 * minute);
    expect(story.look().events).to.deep.equal([]);
    story.resume('skip').lookAll();
    expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
    expect(story.skipped).to.deep.equal(['paused 08:04:00-08:05:00 (2)']);
    expect(story.pass(minute).lookAll().fired.at(-1)).to.equal('08:06:00');
  });

  it('follows the misfire policy for fires missed before the pause, whatever the resume says', () => {
    const fields = { misfire_policy: 'skip', misfire_grace_seconds: 2 } as const;
    const story = new Story(fields).pass(3 * minute + 10_000).pause();
    story
      .pass(2 * minute)
      .resume('all')
      .lookAll();
    expect(story.skipped).to.deep.equal(['missed 08:01:00-08:03:00 (3)']);
    expect(story.fired).to.deep.equal(['08:04:00', '08:05:00']);
  });

  it('follows the release of a hold for fires that were due before the pause', () => {
    const story = new Story({ misfire_policy: 'skip' }).pass(3 * minute + 10_000).pause();
    story
      .pass(2 * minute)
      .resume('skip')
      .release('all')
      .lookAll();
    expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:03:00']);
    expect(story.skipped).to.deep.equal(['paused 08:04:00-08:05:00 (2)']);
  });

  it('decides only what was due before the pause if the pause held nothing back', () => {
    const story = new Story({ schedule_expr: '0 * * * *' }).pass(hour + 10_000).pause();
    story.pass(10_000).resume('skip').lookAll();
    expect(story.firesEvents.map(({ event }) => event.type)).to.deep.equal(['Fired']);
    expect(story.fired).to.deep.equal(['09:00:00']);
    expect(story.next).to.equal('10:00:00');
  });

  it('decides what was due before the pause even if the rule changed during it', () => {
    const story = new Story()
      .pass(minute + 10_000)
      .pause()
      .pass(minute);
    story.update({ schedule_expr: '30 * * * * *' }).pass(minute).resume('all').lookAll();
    expect(story.fired).to.deep.equal(['08:01:00', '08:02:00', '08:02:30']);
    expect(story.next).to.equal('08:03:30');
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

  it('records nothing if nothing was held back', () => {
    const story = new Story().pass(10_000).pause().pass(10_000).resume('all');
    expect(story.lookAll().firesEvents).to.deep.equal([]);
    expect(story.pass(40_000).lookAll().fired).to.deep.equal(['08:01:00']);
  });

  it('decides the fires that each of two pauses held back by the policy of its resume', () => {
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

  it('applies the policy of the resume also to fires held back under the previous rule', () => {
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

  it('runs only the newest of what it held back under several rules', () => {
    const story = paused()
      .update({ schedule_expr: '*/2 * * * *' })
      .pass(4 * minute)
      .update({ schedule_expr: '*/3 * * * *' })
      .pass(5 * minute);
    story.resume('latest').lookAll();
    expect(story.fired).to.deep.equal(['08:01:00', '08:12:00']);
    expect(story.skipped).to.deep.equal([
      'paused 08:02:00-08:04:00 (3)',
      'paused 08:06:00-08:08:00 (2)',
      'paused 08:09:00-08:09:00 (1)',
    ]);
    expect(story.next).to.equal('08:15:00');
  });

  it('lets a fire run that was snoozed beyond the pause', () => {
    const story = new Story({ schedule_expr: '0 * * * *' }).snooze(2 * 3600).pause();
    story
      .pass(90 * minute)
      .resume('skip')
      .lookAll();
    expect(story.firesEvents).to.deep.equal([]);
    expect(nextRunOf(story.state)).to.equal('2026-03-02T11:00:00.000Z');
    story.pass(90 * minute).lookAll();
    expect(story.fired).to.deep.equal(['09:00:00']);
    expect(story.skipped).to.deep.equal(['snoozed 10:00:00-11:00:00 (2)']);
    expect(story.next).to.equal('12:00:00');
  });

  it('holds back a fire that was snoozed to a time within the pause', () => {
    const story = new Story({ schedule_expr: '0 * * * *' }).snooze(1800).pause();
    story
      .pass(2.5 * hour)
      .resume('skip')
      .lookAll();
    expect(story.skipped).to.deep.equal([
      'paused 09:00:00-09:00:00 (1)',
      'paused 10:00:00-10:00:00 (1)',
    ]);
    expect(nextRunOf(story.state)).to.equal('2026-03-02T11:00:00.000Z');
  });
});
