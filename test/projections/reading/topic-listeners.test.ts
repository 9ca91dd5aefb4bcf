import { expect } from 'chai';
import { TopicListeners } from '../../../projections/reading/topic-listeners.ts';
import type { TopicDocument } from '../../../projections/views/topics.ts';

describe('tasks that listen to topics', () => {
  const document = (task_id: string, pattern: string, listening = true): TopicDocument => ({
    task_id,
    pattern,
    listening,
    created_by: 'somebody',
    schedule_kind: 'event',
    status: listening ? 'active' : 'paused',
    revision: 0,
  });
  const all = { after: null, offset: 0, limit: 10 };
  let listeners: TopicListeners;

  beforeEach(() => {
    listeners = new TopicListeners();
  });

  const listen = (taskId: string, pattern: string, listening = true): void =>
    listeners.set(taskId, document(taskId, pattern, listening), 0);

  it('are found by a topic once each, sorted by id', () => {
    listen('c', 'a.*');
    listen('b', '#');
    listen('a', 'a.*');
    expect(listeners.matching('a.b')).to.deep.equal(['a', 'b', 'c']);
    expect(listeners.matching('a')).to.deep.equal(['b']);
  });

  it('are listed by pattern, sorted', () => {
    listen('2', 'b');
    listen('1', 'b');
    listen('3', 'a');
    expect(listeners.page(all, 10)).to.deep.equal({
      total: 2,
      topics: [
        { topic: 'a', active_tasks: 1, task_ids: ['3'] },
        { topic: 'b', active_tasks: 2, task_ids: ['1', '2'] },
      ],
      hasMore: false,
    });
  });

  it('are counted even if not all are named', () => {
    for (const id of ['3', '1', '2']) listen(id, 'a');
    const [topic] = listeners.page(all, 2).topics;
    expect(topic).to.deep.equal({ topic: 'a', active_tasks: 3, task_ids: ['1', '2'] });
  });

  it('leave a pattern when they get another one, are paused or are canceled', () => {
    listen('moves', 'a');
    listen('pauses', 'b');
    listen('goes', 'c');
    listeners.page(all, 1);
    listen('moves', 'd');
    listen('pauses', 'b', false);
    listeners.set('goes', null, 1);
    expect(listeners.page(all, 1).topics.map(({ topic }) => topic)).to.deep.equal(['d']);
    expect(['a', 'b', 'c', 'd'].flatMap((topic) => listeners.matching(topic))).to.deep.equal([
      'moves',
    ]);
    expect(listeners.get('pauses')?.document.status).to.equal('paused');
    expect(listeners.get('goes')).to.equal(undefined);
  });
});
