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

  it('limit its tasks, also those created at once, until one is canceled', async () => {
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

  it('limit the payload bytes of a minute, with the time at which they free', async () => {
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

  it('refuse a run by hand once the runs of this minute are used up', async () => {
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

  it('are shown to the agents of the namespace, and of no other', async () => {
    const answer = await api().admin.client.get('/namespaces/default/usage');
    expect(answer.json).to.deep.include({ namespace: 'default', weight: 3 });
    expect((await api().admin.client.get('/namespaces/other/usage')).status).to.equal(404);
  });
});
