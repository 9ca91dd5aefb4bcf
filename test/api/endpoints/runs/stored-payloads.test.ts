import { expect } from 'chai';
import type { DataOf } from '../../../../domain/events/catalogue.ts';
import type { JsonObject } from '../../../../domain/json.ts';
import { streams } from '../../../../domain/streams.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { FailedRuns } from './failed-runs.ts';

const isAscending = ([first = '', second = '']: readonly string[]): boolean => first < second;

const large = { text: 'x'.repeat(2_000) };

describe('a run whose request leaves out the payload of its event', () => {
  const api = useRunningApi();
  let caller: SignedIn;
  let runs: FailedRuns;
  let task: string;
  beforeEach(async () => {
    caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read', 'audit:read']);
    runs = new FailedRuns(api(), caller);
    task = await runs.makeTask();
  });

  const keep = (event_id: string, payload: JsonObject, namespace?: string): Promise<void> => {
    const place = namespace === undefined ? {} : { namespace };
    const data = { event_id, payload, triggered_tasks: [task], ...place };
    return api().append(streams.payload(event_id), [{ type: 'PayloadStored', data }]);
  };

  /** A run that an event has triggered. @returns its id */
  const triggered = async (event: DataOf<'RunRequested'>['event']): Promise<string> => {
    const asked = await runs.requestOf(await runs.runNow(task));
    const run = crypto.randomUUID();
    const data = { ...asked, trigger: 'event' as const, event };
    await api().append(streams.run(run), [{ type: 'RunRequested', data }]);
    return run;
  };

  const reference = (id: string): NonNullable<DataOf<'RunRequested'>['event']> => {
    const published_at = '2026-03-01T09:00:00.000Z';
    return { id, topic: 'a.b', source_agent_id: caller.id, published_at };
  };

  /** @returns the ids of the run and of its event */
  const withStored = async (
    payload: JsonObject = large,
    namespace?: string,
  ): Promise<{ readonly run: string; readonly event: string }> => {
    const event = crypto.randomUUID();
    await keep(event, payload, namespace);
    return { run: await triggered(reference(event)), event };
  };

  it('shows the payload, in single runs and in lists, now and as of the past', async () => {
    const { run, event } = await withStored();
    const shown = { ...reference(event), payload: large };
    const after = `after=${await api().store.head()}`;
    const one = await caller.client.get(`/runs/${run}?${after}`);
    expect(one.at('event')).to.deep.equal(shown);
    const past = `as_of=${await api().store.head()}`;
    expect((await caller.client.get(`/runs/${run}?${past}`)).at('event')).to.deep.equal(shown);
    const list = await caller.client.get(`/runs?task_id=${task}&trigger=event`);
    expect(list.at('items.0.event')).to.deep.equal(shown);
    const history = await caller.client.get(`/runs/${run}/history`);
    expect(history.text).to.contain(large.text);
  });

  it('shows the size of a payload over 64 KiB in lists', async () => {
    const payload = { text: 'x'.repeat(70_000) };
    const { run } = await withStored(payload);
    const after = `after=${await api().store.head()}`;
    const list = await caller.client.get(`/runs?task_id=${task}&trigger=event&${after}`);
    const size_bytes = JSON.stringify(payload).length;
    expect(list.at('items.0.event.payload')).to.deep.equal({ truncated: true, size_bytes });
    expect((await caller.client.get(`/runs/${run}`)).at('event.payload')).to.deep.equal(payload);
  });

  it('is found by the payload', async () => {
    const text = crypto.randomUUID();
    const { run } = await withStored({ ...large, text });
    await withStored();
    const ids = async (input: string): Promise<readonly unknown[]> => {
      const after = `after=${await api().store.head()}`;
      const found = await caller.client.get(`/runs?task_id=${task}&input=${input}&${after}`);
      expect(found.status, found.text).to.equal(200);
      return (found.at('items') as readonly { readonly id: string }[]).map(({ id }) => id);
    };
    expect(await ids(text.toUpperCase())).to.deep.equal([run]);
    expect(await ids(crypto.randomUUID())).to.deep.equal([]);
  });

  it('is exported with the payload', async () => {
    const { run, event } = await withStored();
    const after = `after=${await api().store.head()}`;
    expect((await caller.client.get(`/runs/${run}?${after}`)).status).to.equal(200);
    const rows = await caller.client.get(`/runs/export?task_id=${task}&trigger=event`);
    expect(rows.status, rows.text).to.equal(200);
    const [row] = rows.text.trim().split('\n');
    expect((JSON.parse(row ?? '') as { readonly event: unknown }).event).to.deep.equal({
      ...reference(event),
      payload: large,
    });
  });

  it('shows null if the payload is not in the log or belongs to another namespace', async () => {
    const lost = await triggered(reference(crypto.randomUUID()));
    const { run: foreign } = await withStored(large, 'shop');
    const after = `after=${await api().store.head()}`;
    for (const run of [lost, foreign]) {
      const shown = await caller.client.get(`/runs/${run}?${after}`);
      expect(shown.status, shown.text).to.equal(200);
      expect(shown.at('event.payload')).to.equal(null);
    }
    expect((await caller.client.get(`/runs?task_id=${task}`)).status).to.equal(200);
  });

  for (const path of ['retry', 'redrive'] as const) {
    it(`also records that a ${path} of the run needs the payload`, async () => {
      const { run, event } = await withStored();
      await runs.failWith(task, run, []);
      const after = `after=${await api().store.head()}`;
      expect((await caller.client.get(`/runs/${run}?${after}`)).status).to.equal(200);
      const answer =
        path === 'retry'
          ? await caller.client.post(`/runs/${run}/retry`)
          : await caller.client.post('/runs/redrive', { task_id: task });
      expect(answer.status, answer.text).to.equal(200);
      const at = path === 'retry' ? 'details.run_id' : 'details.runs.0.run_id';
      const retry = answer.textAt(at);
      expect((await runs.requestOf(retry)).event).to.deep.equal(reference(event));
      const [, referenced, ...more] = await api().store.readStream(streams.payload(event));
      expect(referenced).to.deep.include({ type: 'PayloadReferenced', data: { run_id: retry } });
      expect(more).to.deep.equal([]);
      const [requested] = await api().store.readStream(streams.run(retry));
      expect([referenced?.position, requested?.position]).to.satisfy(isAscending);
      const shown = await caller.client.get(`/runs/${retry}?after=${await api().store.head()}`);
      expect(shown.at('event.payload')).to.deep.equal(large);
    });
  }

  it('records only once that a repeated retry needs the payload', async () => {
    const { run, event } = await withStored();
    await runs.failWith(task, run, []);
    const headers = { 'idempotency-key': crypto.randomUUID() };
    const append = api().store.append.bind(api().store);
    let isDown = true;
    api().store.append = async (stream, events, expected) => {
      if (isDown && events[0]?.type === 'RunRequested') throw new Error('the process dies here');
      return append(stream, events, expected);
    };
    try {
      expect(
        (await caller.client.post(`/runs/${run}/retry`, undefined, { headers })).status,
      ).to.equal(500);
      isDown = false;
      const answer = await caller.client.post(`/runs/${run}/retry`, undefined, { headers });
      expect(answer.status, answer.text).to.equal(200);
    } finally {
      api().store.append = append;
    }
    const events = await api().store.readStream(streams.payload(event));
    expect(events.map(({ type }) => type)).to.deep.equal(['PayloadStored', 'PayloadReferenced']);
  });
});
