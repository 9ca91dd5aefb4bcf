import { expect } from 'chai';
import { KEPT_OF_A_TOPIC, publishedProjection } from '../../../projections/views/published.ts';
import { LogOfTest, folded } from '../recorded.ts';

const agent = '00000000-0000-7000-8000-000000000001';

describe('the view of publications', () => {
  const publish = (log: LogOfTest, topic: string) =>
    log.add(`topic-${topic}`, 'EventPublished', {
      event_id: agent,
      topic,
      payload: { n: log.events.length },
      source_agent_id: agent,
      published_at: '2026-03-01T08:00:00.000Z',
      triggered_tasks: [],
    });
  const listed = (log: LogOfTest) =>
    [...folded(publishedProjection, log.events).values()].filter((each) => each.listed);

  it('stays bounded however much is published', () => {
    const log = new LogOfTest();
    for (let times = 0; times < 3 * KEPT_OF_A_TOPIC + 7; times += 1) publish(log, 'a.b');
    publish(log, 'c');
    expect(listed(log)).to.have.length(KEPT_OF_A_TOPIC + 1);
    const oldest = listed(log)
      .map(({ position }) => position)
      .sort()[0];
    expect(Number(oldest)).to.equal(2 * KEPT_OF_A_TOPIC + 8);
  });

  it('drops events that were trimmed from a topic, and none of other topics', () => {
    const log = new LogOfTest();
    for (let times = 0; times < 5; times += 1) publish(log, 'a');
    publish(log, 'b');
    const cutoff = '2026-03-01T08:00:04.000Z';
    const trimmed = { cutoff, deleted_count: 3, first: 0, before: 3, oldest_at: cutoff };
    log.add('topic-a', 'TopicTrimmed', trimmed);
    publish(log, 'a');
    const left = listed(log).map((each) => each.stream_id.split('-')[1]);
    expect(left.sort()).to.deep.equal(['0', '3', '4', '6']);
    const extent = folded(publishedProjection, log.events).get('a');
    expect(extent).to.deep.equal({
      listed: false,
      topic: 'a',
      position: null,
      oldest_at: cutoff,
      before: 3,
      trims: [5],
    });
  });

  it('knows a topic by its trimming if its first events were removed from the log', () => {
    const log = new LogOfTest();
    publish(log, 'a');
    const cutoff = '2026-03-01T08:00:04.000Z';
    const trimmed = { cutoff, deleted_count: 1, first: 0, before: 1, oldest_at: cutoff };
    log.add('topic-a', 'TopicTrimmed', trimmed);
    const forgotten = folded(publishedProjection, log.events.slice(1));
    expect(forgotten).to.deep.equal(folded(publishedProjection, log.events));
  });
});
