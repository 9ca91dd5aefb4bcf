import { expect } from 'chai';
import { EVERY_NAMESPACE } from '../../../projections/reach.ts';
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
    expect(listeners.matching('default', 'a.b')).to.deep.equal(['a', 'b', 'c']);
    expect(listeners.matching('default', 'a')).to.deep.equal(['b']);
  });

  it('are listed by pattern, sorted', () => {
    listen('2', 'b');
    listen('1', 'b');
    listen('3', 'a');
    expect(listeners.page('default', all, 10)).to.deep.equal({
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
    const [topic] = listeners.page('default', all, 2).topics;
    expect(topic).to.deep.equal({ topic: 'a', active_tasks: 3, task_ids: ['1', '2'] });
  });

  it('leave a pattern when they get another one, are paused or are canceled', () => {
    listen('moves', 'a');
    listen('pauses', 'b');
    listen('goes', 'c');
    listeners.page('default', all, 1);
    listen('moves', 'd');
    listen('pauses', 'b', false);
    listeners.set('goes', null, 1);
    expect(listeners.page('default', all, 1).topics.map(({ topic }) => topic)).to.deep.equal(['d']);
    expect(
      ['a', 'b', 'c', 'd'].flatMap((topic) => listeners.matching('default', topic)),
    ).to.deep.equal(['moves']);
    expect(listeners.get('pauses')?.document.status).to.equal('paused');
    expect(listeners.get('goes')).to.equal(undefined);
  });

  it('are found only by topics of their own namespace', () => {
    listen('here', 'a');
    listeners.set('there', { ...document('there', '#'), namespace: 'team' }, 0);
    listeners.set('beside', { ...document('beside', 'a'), namespace: 'team' }, 0);
    expect(listeners.matching('default', 'a')).to.deep.equal(['here']);
    expect(listeners.matching('team', 'a')).to.deep.equal(['beside', 'there']);
    expect(listeners.matching('other', 'a')).to.deep.equal([]);
    const patterns = (namespace: string) =>
      listeners.page(namespace, all, 5).topics.map(({ topic, task_ids }) => [topic, ...task_ids]);
    expect(patterns('default')).to.deep.equal([['a', 'here']]);
    expect(patterns('other')).to.deep.equal([]);
    expect(patterns(EVERY_NAMESPACE)).to.deep.equal([
      ['#', 'there'],
      ['a', 'beside', 'here'],
    ]);
  });
});
