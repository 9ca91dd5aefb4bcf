import { expect } from 'chai';
import { nextFireOf } from '../../../domain/tasks/schedule-state.ts';
import { minute, Story } from './schedule-story.ts';

describe('a task whose rule changes while a fire of both rules is being decided', () => {
  /** Sets a new rule just before a fire, which is then decided without knowledge of the new rule. */
  const raced = (story: Story, before: number, expr: string): Story => {
    const known = story.state;
    story.pass(before - 5).update({ schedule_expr: expr });
    story.pass(5);
    story.write(story.decision(known));
    return story;
  };

  it('continues by the new rule, even if the next fire of the previous rule is tomorrow', () => {
    const story = raced(new Story({ schedule_expr: '1 8 * * *' }), minute, '* * * * *');
    expect(story.fired).to.deep.equal(['08:01:00']);
    story.lookAll();
    expect(story.fired).to.deep.equal(['08:01:00']);
    expect(nextFireOf(story.state)).to.equal('2026-03-02T08:02:00.000Z');
    story.pass(minute).lookAll();
    expect(story.fired).to.deep.equal(['08:01:00', '08:02:00']);
  });

  it('continues by the new rule, even if the previous rule has no fire left', () => {
    const once = { schedule_kind: 'once', schedule_expr: '2026-03-02T08:01:00Z' } as const;
    const story = new Story(once);
    const known = story.state;
    story
      .pass(minute - 5)
      .update({ schedule_kind: 'cron', schedule_expr: '* * * * *' })
      .pass(5);
    story.write(story.decision(known));
    expect(story.lookAll().pass(minute).lookAll().fired).to.deep.equal(['08:01:00', '08:02:00']);
  });
});
