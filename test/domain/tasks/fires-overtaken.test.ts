import { expect } from 'chai';
import { nextFireOf } from '../../../domain/tasks/schedule-state.ts';
import { minute, Story } from './schedule-story.ts';

describe('a rule set while a fire that it names is being decided by the previous rule', () => {
  /** The new rule is set just before the fire at 08:01 or 09:00, which is decided without knowing of it. */
  const raced = (story: Story, before: number, expr: string): Story => {
    const known = story.state;
    story.pass(before - 5).update({ schedule_expr: expr });
    story.pass(5);
    story.write(story.decision(known));
    return story;
  };

  it('continues by the new rule, though the previous one has its next fire tomorrow', () => {
    const story = raced(new Story({ schedule_expr: '1 8 * * *' }), minute, '* * * * *');
    expect(story.fired).to.deep.equal(['08:01:00']);
    story.lookAll();
    expect(story.fired).to.deep.equal(['08:01:00']);
    expect(nextFireOf(story.state)).to.equal('2026-03-02T08:02:00.000Z');
    story.pass(minute).lookAll();
    expect(story.fired).to.deep.equal(['08:01:00', '08:02:00']);
  });

  it('continues though the previous rule has no fire left', () => {
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
