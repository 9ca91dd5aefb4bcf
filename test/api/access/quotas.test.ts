import { expect } from 'chai';
import { rateWait } from '../../../api/access/quota-gate.ts';
import { quotaCounter } from '../../../domain/namespaces/quotas.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('the quotas of a namespace', () => {
  const quotas = {
    default: {
      weight: 3,
      tasks: 3,
      agents: 4,
      runs_per_minute: 2,
      payload_bytes_per_minute: 2_000,
    },
    other: { tasks: 0 },
  };
  const api = useRunningApi({ quotas });
  const useOf = async (quota: string) => {
    const answer = await api().admin.client.get('/namespaces/default/usage');
    expect(answer.status, answer.text).to.equal(200);
    const all = answer.at('quotas') as { quota: string; used: number; frees_at: string | null }[];
    return all.find((each) => each.quota === quota);
  };
  const publish = (payload: object) => {
    const { id, client } = api().admin;
    return client.post('/events', { topic: 'a', payload, source_agent_id: id });
  };

  it('limit its tasks, even those created concurrently, until one is canceled', async () => {
    const { id, client } = api().admin;
    const create = () => client.post('/tasks', plainTask(id));
    const answers = await Promise.all([create(), create(), create(), create(), create()]);
    const created = answers.filter(({ status }) => status === 201);
    const refused = answers.filter(({ status }) => status === 409);
    expect([created.length, refused.length]).to.deep.equal([3, 2]);
    const details = { quota: 'tasks', limit: 3, used: 3, frees_at: null };
    expect(refused[0]?.at('details')).to.deep.equal(details);
    expect(await useOf('tasks')).to.include({ used: 3, limit: 3 });
    await client.post(`/tasks/${created[0]?.textAt('id') ?? ''}/cancel`);
    expect((await create()).status).to.equal(201);
    const metrics = await api().metricsText();
    expect(metrics).to.contain('limit_refusals_total{limit="tasks"} 2');
  });

  it('limit its agents', async () => {
    const { client } = api().admin;
    const statuses: number[] = [];
    for (const name of ['a', 'b', 'c', 'd']) {
      statuses.push((await client.post('/agents', { name, scopes: [] })).status);
    }
    expect(statuses).to.deep.equal([201, 201, 201, 409]);
    expect(await useOf('agents')).to.include({ used: 4, limit: 4 });
  });

  it('limit the payload bytes per minute, and say when there is room again', async () => {
    const payload = { text: 'x'.repeat(700) };
    expect((await publish(payload)).status).to.equal(202);
    const refused = await publish({ text: 'x'.repeat(1_900) });
    expect(refused.status, refused.text).to.equal(429);
    expect(refused.at('details')).to.include({
      quota: 'payload_bytes_per_minute',
      limit: 2_000,
      window: '60s',
    });
    const freesAt = refused.textAt('details.reset_at');
    expect(Number(refused.header('retry-after'))).to.be.within(1, 60);
    const { frees_at } = (await useOf('payload_bytes_per_minute')) ?? {};
    expect(Date.parse(frees_at ?? '') - Date.parse(freesAt)).to.be.within(-1000, 1000);
  });

  it('reject a manual run once the runs of this minute are used up', async () => {
    const { client } = api().admin;
    const listed = await client.get('/tasks?status=active');
    const task = listed.textAt('items.0.id');
    expect((await client.post(`/tasks/${task}/run_now`)).status).to.equal(200);
    expect(await rateWait(api(), 'default')).to.equal(null);
    await api().coordination.count(quotaCounter('runs_per_minute', 'default'), 2, 60_000);
    expect(await rateWait(api(), 'default')).to.match(/^the next minute: .* 2 of 2 runs/);
    const refused = await client.post(`/tasks/${task}/run_now`);
    expect(refused.status, refused.text).to.equal(429);
    expect(refused.at('details')).to.include({ quota: 'runs_per_minute', limit: 2 });
  });

  it('are shown only to agents of the namespace', async () => {
    const answer = await api().admin.client.get('/namespaces/default/usage');
    expect(answer.json).to.deep.include({ namespace: 'default', weight: 3 });
    expect((await api().admin.client.get('/namespaces/other/usage')).status).to.equal(404);
  });
});

describe('the quota of topics', () => {
  const api = useRunningApi({ quotas: { default: { topics: 1 } } });

  it('rejects a new topic, but not events of existing topics', async () => {
    const { id, client } = api().admin;
    const publish = (topic: string) =>
      client.post('/events', { topic, payload: {}, source_agent_id: id });
    const answers = await Promise.all(['a', 'a', 'a'].map(publish));
    expect(answers.map(({ status }) => status)).to.deep.equal([202, 202, 202]);
    const refused = await publish('b');
    expect(refused.status, refused.text).to.equal(409);
    expect(refused.at('details')).to.deep.equal({
      quota: 'topics',
      limit: 1,
      used: 1,
      frees_at: null,
    });
    expect((await publish('a')).status).to.equal(202);
  });
});

describe('the quota of events in the log', () => {
  const api = useRunningApi({ quotas: { default: { events: 4, artifact_bytes: 1_000 } } });

  it('rejects any request that would add events, until topics are trimmed', async () => {
    const { id, client } = api().admin;
    const publish = () => client.post('/events', { topic: 'a', payload: {}, source_agent_id: id });
    const used = async () => {
      const all = (await client.get('/namespaces/default/usage')).at('quotas') as {
        readonly quota: string;
        readonly used: number;
      }[];
      return all.find(({ quota }) => quota === 'events')?.used;
    };
    const task = (await client.post('/tasks', plainTask(id))).textAt('id');
    for (const _each of [1, 2, 3]) expect((await publish()).status).to.equal(202);
    expect(await used()).to.equal(4);
    const refused = await publish();
    const details = { quota: 'events', limit: 4, used: 4, frees_at: null };
    expect([refused.status, refused.at('details')]).to.deep.equal([409, details]);
    for (const attempt of [
      () => client.post(`/tasks/${task}/run_now`),
      () => client.put(`/tasks/${task}`, { title: 'Another' }),
      () => client.post('/tasks', plainTask(id)),
      () =>
        client.post(`/tasks/${task}/backfill`, {
          from: '2026-01-01T00:00:00Z',
          to: '2026-01-02T00:00:00Z',
        }),
    ]) {
      const answer = await attempt();
      expect([answer.status, answer.at('details.quota')]).to.deep.equal([409, 'events']);
    }
    expect((await client.delete('/stream/cleanup?max_age_hours=0.000001')).status).to.equal(200);
    expect(await used()).to.equal(1);
    expect((await publish()).status).to.equal(202);
  });

  it('does not limit artifacts, which have their own quota', async () => {
    const { requireRoom } = api().artifacts;
    await requireRoom?.('default', 1_000);
    const error = await requireRoom?.('default', 1_001).catch((thrown: unknown) => thrown);
    expect(error).to.have.nested.property('details.quota', 'artifact_bytes');
  });
});
