import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

const HOUR = 3_600_000;

describe('the stream of publications', () => {
  const api = useRunningApi();

  const publish = async (topic: string, payload: object = {}): Promise<string> => {
    const { admin } = api();
    const body = { topic, payload, source_agent_id: admin.id };
    const answer = await admin.client.post('/events', body);
    expect(answer.status, answer.text).to.equal(202);
    return answer.textAt('details.event_id');
  };
  const recent = async (query = '') => {
    const answer = await api().admin.client.get(`/stream/recent${query}`);
    expect(answer.status, answer.text).to.equal(200);
    const events = answer.at('events') as Record<string, unknown>[];
    expect(answer.at('total_events')).to.equal(events.length);
    return events;
  };
  const idsOf = (events: readonly Record<string, unknown>[]) =>
    events.map((each) => each['event_id']);
  const cleanup = (hours: number | string) =>
    api().admin.client.delete(`/stream/cleanup?max_age_hours=${hours}`);

  it('shows the newest first, complete, from all topics or one', async () => {
    const { admin } = api();
    const task = await admin.client.post('/tasks', {
      ...plainTask(admin.id),
      schedule_kind: 'event',
      schedule_expr: 'orders.*',
    });
    const ids = [await publish('orders.created', { order: 1 })];
    ids.push(await publish('other', {}), await publish('orders.created', { order: 2 }));
    expect(idsOf(await recent())).to.deep.equal([...ids].reverse());
    expect(idsOf(await recent('?count=2'))).to.deep.equal([ids[2], ids[1]]);
    const [newest, ...rest] = await recent('?topic=orders.created');
    expect(idsOf(rest)).to.deep.equal([ids[0]]);
    expect(newest).to.have.all.keys(
      'event_id',
      'stream_id',
      'topic',
      'payload',
      'source_agent_id',
      'published_at',
      'triggered_tasks',
    );
    expect(newest).to.deep.include({
      event_id: ids[2],
      topic: 'orders.created',
      payload: { order: 2 },
      source_agent_id: admin.id,
      triggered_tasks: [task.textAt('id')],
    });
    const at = Date.parse(String(newest?.['published_at']));
    expect(newest?.['stream_id']).to.equal(`${at}-1`);
    expect(await recent('?topic=nobody.published')).to.deep.equal([]);
    const other = await admin.client.get('/events/stream/recent?count=1');
    expect(idsOf(other.at('events') as Record<string, unknown>[])).to.deep.equal([ids[2]]);
    await admin.client.post(`/tasks/${task.textAt('id')}/cancel`);
  });

  it('keeps a thousand of each topic, and returns as many', async () => {
    const old = await publish('seldom');
    const { admin } = api();
    const event = (index: number) => ({
      type: 'EventPublished' as const,
      data: {
        event_id: `0000000a-0000-4000-8000-${String(index).padStart(12, '0')}`,
        topic: 'often',
        payload: { index },
        source_agent_id: admin.id,
        published_at: new Date(api().clock.now()).toISOString(),
        triggered_tasks: [],
      },
    });
    for (let from = 0; from < 1200; from += 300) {
      await api().append(
        'topic-often',
        Array.from({ length: 300 }, (_, index) => event(from + index)),
      );
    }
    const last = await publish('often');
    const events = await recent('?topic=often&count=1000');
    expect(events).to.have.length(1000);
    expect(events[0]).to.include({ event_id: last });
    expect(events[1]?.['payload']).to.deep.equal({ index: 1199 });
    expect(events.at(-1)?.['payload']).to.deep.equal({ index: 201 });
    expect(idsOf(await recent('?topic=seldom'))).to.deep.equal([old]);
  });

  it('shows each once, even if more are published during the read', async () => {
    const { admin, readModel } = api();
    for (let index = 0; index < 150; index += 1) await publish('busy', { index });
    const list = readModel.list.bind(readModel);
    let pages = 0;
    readModel.list = async (...given) => {
      pages += 1;
      const page = await list(...given);
      if (pages > 1) return page;
      await publish('busy', { late: true });
      // A read of the same agent includes its own writes: the view is past this one.
      await admin.client.get('/stream/recent?topic=busy&count=1');
      return page;
    };
    const events = await recent('?topic=busy&count=150').finally(() => {
      readModel.list = list;
    });
    // The second list is the request for the late publication alone.
    expect(pages).to.equal(2);
    expect(new Set(idsOf(events)).size).to.equal(150);
    expect(events.at(-1)?.['payload']).to.deep.equal({ index: 0 });
  });

  it('hides older ones from reads at once, and truncates them in the log', async () => {
    api().clock.shift(48 * HOUR);
    expect((await cleanup(24)).at('details.deleted_count')).to.be.greaterThan(1200);
    expect(await recent()).to.deep.equal([]);
    expect(await api().store.readStream('topic-seldom', { limit: 5 })).to.have.length(1);

    const first = await publish('orders.created');
    api().clock.shift(2 * HOUR);
    const second = await publish('orders.created');
    const third = await publish('orders.paid');
    const answer = await cleanup(1.5);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.at('success')).to.equal(true);
    expect(answer.at('details')).to.deep.include({
      deleted_count: 1,
      max_age_hours: 1.5,
      complete: true,
    });
    const cutoff = api().clock.now() - 1.5 * HOUR;
    expect(Date.parse(answer.textAt('details.cutoff'))).to.be.closeTo(cutoff, 5_000);
    expect(idsOf(await recent())).to.deep.equal([third, second]);
    const left = await api().store.readStream('topic-orders.created');
    const published = left.filter(({ type }) => type === 'EventPublished');
    expect(published.map(({ data }) => (data as { event_id: string }).event_id)).to.deep.equal([
      second,
    ]);
    expect(idsOf(await recent())).to.not.include(first);
    expect((await cleanup(1.5)).at('details.deleted_count')).to.equal(0);

    // The events of the earlier trims are not publications.
    api().clock.shift(2 * HOUR);
    const fourth = await publish('orders.created');
    expect((await cleanup(1)).at('details.deleted_count')).to.equal(2);
    expect(idsOf(await recent())).to.deep.equal([fourth]);
  });

  it('keeps publications in the log that may still trigger runs', async () => {
    await publish('needed');
    api().clock.shift(2 * HOUR);
    const { requestedUpTo } = api();
    requestedUpTo.position = '';
    expect((await cleanup(1)).at('details.deleted_count')).to.be.at.least(1);
    expect(await recent('?topic=needed')).to.deep.equal([]);
    const types = async () =>
      (await api().store.readStream('topic-needed')).map(({ type }) => type);
    expect(await types()).to.deep.equal(['EventPublished', 'TopicTrimmed']);
    requestedUpTo.position = null;
    api().clock.shift(2 * HOUR);
    for (let times = 0; times < 2; times += 1) {
      expect((await cleanup(1)).at('details.deleted_count')).to.equal(0);
      expect(await types()).to.deep.equal(['TopicTrimmed']);
    }
    const id = await publish('needed');
    expect(idsOf(await recent('?topic=needed'))).to.deep.equal([id]);
  });

  it('can be read by agents with the scope, and trimmed by an admin', async () => {
    const reader = await api().signIn(['events:read']);
    expect((await reader.client.get('/stream/recent')).status).to.equal(200);
    expect((await reader.client.delete('/events/stream/cleanup')).status).to.equal(403);
    const done = await api().admin.client.delete('/events/stream/cleanup');
    expect(done.at('details.max_age_hours')).to.equal(24);
  });
});
