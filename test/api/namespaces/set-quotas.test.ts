import { expect } from 'chai';
import { silent } from '../../../observability/telemetry.ts';
import { LiveQuotas } from '../../../projections/reading/live-quotas.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';
import { plainTask } from '../plain-task.ts';
import { agentIn } from './agent-in.ts';

const path = '/namespaces/sales';

describe('the quotas of a namespace that its administrators set', () => {
  const quotas = { sales: { tasks: 10, runs_per_minute: 60 } };
  const api = useRunningApi({ quotas });
  let lead: SignedIn;

  before(async () => {
    await api().admin.client.post('/namespaces', { name: 'sales' });
    lead = await agentIn(api(), 'sales');
  });
  beforeEach(async () => {
    await api().admin.client.put(path, { quotas: {} });
    await lead.client.put(path, { quotas: {} });
  });
  const shown = async (): Promise<unknown> => (await lead.client.get(path)).at('quotas');

  it('start with those of the settings', async () => {
    const answer = await lead.client.get(path);
    expect(answer.json).to.deep.include({
      quotas: quotas.sales,
      quota_bounds: quotas.sales,
      own_quotas: {},
    });
  });

  it('can be set when a namespace is created', async () => {
    const body = { name: 'new', quotas: { tasks: 1 } };
    const created = await api().admin.client.post('/namespaces', body);
    expect([created.status, created.at('quotas')]).to.deep.equal([201, { tasks: 1 }]);
  });

  it('can be lowered by an agent with namespace:admin, with immediate effect', async () => {
    const answer = await lead.client.put(path, { quotas: { tasks: 0, topics: 3 } });
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.at('quotas')).to.deep.equal({ tasks: 0, topics: 3, runs_per_minute: 60 });
    const refused = await lead.client.post('/tasks', plainTask(lead.id));
    expect([refused.status, refused.at('details.quota')]).to.deep.equal([409, 'tasks']);
    await lead.client.put(path, { quotas: {} });
    expect((await lead.client.post('/tasks', plainTask(lead.id))).status).to.equal(201);
  });

  it('cannot be raised by that agent above the limits of the settings or an admin', async () => {
    const raised = await lead.client.put(path, { quotas: { tasks: 11 } });
    expect(raised.status).to.equal(403);
    expect(raised.at('details')).to.deep.include({ quota: 'tasks', limit: 10 });
    expect((await lead.client.put(path, { quotas: { weight: 2 } })).status).to.equal(403);
    await api().admin.client.put(path, { quotas: { tasks: 5, weight: 4 } });
    expect((await lead.client.put(path, { quotas: { tasks: 6 } })).status).to.equal(403);
    expect((await lead.client.put(path, { quotas: { weight: 2 } })).status).to.equal(200);
    expect(await shown()).to.deep.equal({ tasks: 5, weight: 2, runs_per_minute: 60 });
  });

  it('can be raised above the settings by an admin, and stay below a bound that the admin lowers later', async () => {
    await api().admin.client.put(path, { quotas: { tasks: 50 } });
    await lead.client.put(path, { quotas: { tasks: 40 } });
    expect(await shown()).to.include({ tasks: 40 });
    await api().admin.client.put(path, { quotas: { tasks: 20 } });
    expect(await shown()).to.include({ tasks: 20 });
  });

  it('cannot be set in another namespace or without the scope', async () => {
    const without = await agentIn(api(), 'sales', ['tasks:write'], 'without');
    expect((await without.client.put(path, { quotas: {} })).status).to.equal(403);
    const other = await lead.client.put('/namespaces/default', { quotas: { tasks: 1 } });
    expect(other.status).to.equal(404);
  });

  it('are in the audit, with who set them', async () => {
    await lead.client.put(path, { quotas: { tasks: 3 } });
    const listed = await lead.client.get('/audit?stream=namespace-sales');
    const [newest] = listed.at('items') as { readonly action: string; readonly actor: string }[];
    expect(newest).to.include({ action: 'NamespaceQuotasSet', actor: lead.id });
  });

  it('take effect in every process, even one that starts later', async () => {
    const stop = new AbortController();
    const running = new LiveQuotas(api().store, quotas, silent.failures);
    const following = running.follow(stop.signal);
    expect(await running.of('sales')).to.include({ tasks: 10 });
    await lead.client.put(path, { quotas: { tasks: 4 } });
    await eventually(async () => (await running.of('sales')).tasks === 4);
    expect(await new LiveQuotas(api().store, quotas, silent.failures).of('sales')).to.include({
      tasks: 4,
    });
    stop.abort();
    await following;
  });

  it('include a weight, which a queue can read without waiting', async () => {
    await api().admin.client.put(path, { quotas: { weight: 7 } });
    const fresh = new LiveQuotas(api().store, quotas, silent.failures);
    expect(fresh.weightOf('sales')).to.equal(1);
    await eventually(() => fresh.weightOf('sales') === 7);
    await fresh.of('default');
    expect(fresh.peek('default')).to.deep.equal({});
  });
});
