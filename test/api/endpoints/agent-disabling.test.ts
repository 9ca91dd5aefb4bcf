import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';

describe('disabling an agent', () => {
  const api = useRunningApi();
  const secret = 'a-secret-of-sixteen-or-more';
  const withSecret = async (scopes: readonly string[]) => {
    const agent = await api().signIn(scopes);
    const { client } = api().admin;
    const set = await client.post(`/agents/${agent.id}/credentials`, { agent_secret: secret });
    expect(set.status, set.text).to.equal(200);
    return agent.id;
  };
  const tokensOf = (agent_id: string, agent_secret = secret) =>
    api().admin.client.as(null).post('/agents/auth/token', { agent_id, agent_secret });
  const disable = (id: string, query = '') =>
    api().admin.client.post(`/agents/${id}/disable${query}`);
  const enable = (id: string) => api().admin.client.post(`/agents/${id}/enable`);

  it('shows who did it, when, and what happens to the runs', async () => {
    const { id } = await api().signIn(['tasks:read']);
    const disabled = await disable(id);
    expect(disabled.status, disabled.text).to.equal(200);
    expect(disabled.at('disabled')).to.include({ runs: 'finish', by: api().admin.id });
    const again = await disable(id, '?runs=cancel');
    expect(again.at('disabled')).to.deep.equal({
      ...(disabled.at('disabled') as object),
      runs: 'cancel',
    });
    const unchanged = await disable(id, '?runs=cancel');
    expect(unchanged.header('ETag')).to.equal(again.header('ETag'));
    const shown = await api().admin.client.get(`/agents/${id}`);
    expect(shown.json).to.deep.equal(again.json);
    const enabled = await enable(id);
    expect([enabled.status, enabled.at('disabled')]).to.deep.equal([200, null]);
  });

  it('stops its tokens at once, and says why', async () => {
    const { id, client } = await api().signIn(['tasks:read']);
    expect((await client.get('/tasks')).status).to.equal(200);
    await disable(id);
    const refused = await client.get('/tasks');
    expect(refused.status).to.equal(401);
    expect(refused.textAt('message')).to.match(/is disabled/);
  });

  it('ends its sessions permanently, so it must sign in again once enabled', async () => {
    const id = await withSecret(['tasks:read']);
    const tokens = await tokensOf(id);
    const client = api().admin.client.as(tokens.textAt('access_token'));
    const refresh = () =>
      client.as(null).post('/agents/auth/refresh', {
        refresh_token: tokens.textAt('refresh_token'),
      });
    await disable(id);
    expect((await refresh()).status).to.equal(401);
    await enable(id);
    expect((await client.get('/tasks')).status).to.equal(401);
    expect((await refresh()).status).to.equal(401);
    const renewed = await tokensOf(id);
    expect(renewed.status, renewed.text).to.equal(200);
    const next = await client.as(renewed.textAt('access_token')).get('/tasks');
    expect(next.status).to.equal(200);
  });

  it('lets nobody sign in, and says why only to those who know the secret', async () => {
    const id = await withSecret(['tasks:read']);
    await disable(id);
    const known = await tokensOf(id);
    expect([known.status, /is disabled/.test(known.text)]).to.deep.equal([401, true]);
    const guessed = await tokensOf(id, 'another-secret-of-some-length');
    expect([guessed.status, /is disabled/.test(guessed.text)]).to.deep.equal([401, false]);
  });

  it('cannot be done by the agent itself', async () => {
    const { admin } = api();
    const own = await disable(admin.id);
    expect([own.status, own.textAt('message')]).to.deep.equal([
      409,
      'an agent cannot disable itself',
    ]);
  });

  it('leaves one admin fewer, so the last enabled one cannot give up the scope', async () => {
    const { admin } = api();
    const other = await api().signIn(['admin']);
    await disable(other.id);
    const resign = () => admin.client.put(`/agents/${admin.id}`, { scopes: ['tasks:read'] });
    const refused = await resign();
    expect([refused.status, refused.text]).to.deep.equal([409, refused.text]);
    expect(refused.textAt('message')).to.match(/last admin/);
  });

  it('is allowed to admins, and within a namespace to its administrators unless the agent is an admin', async () => {
    const { admin } = api();
    const administrator = await api().signIn(['namespace:admin']);
    const worker = await api().signIn(['tasks:read']);
    const path = `/agents/${worker.id}`;
    expect((await administrator.client.post(`${path}/disable`)).status).to.equal(200);
    expect((await administrator.client.post(`${path}/enable`)).status).to.equal(200);
    const refused = await administrator.client.post(`/agents/${admin.id}/disable`);
    expect([refused.status, refused.at('details.required_scopes')]).to.deep.equal([403, ['admin']]);
    const { client } = await api().signIn(['tasks:read']);
    expect((await client.post(`${path}/disable`)).status).to.equal(403);
    const missing = '00000000-0000-4000-8000-000000000000';
    expect((await administrator.client.post(`/agents/${missing}/disable`)).status).to.equal(404);
  });

  it('does not reveal agents of other namespaces to the administrator of a namespace', async () => {
    const administrator = await api().signIn(['namespace:admin']);
    const elsewhere = '11111111-1111-4111-8111-111111111111';
    const data = { name: 'elsewhere', scopes: [], webhook_url: null, namespace: 'sales' };
    await api().append(`agent-${elsewhere}`, [{ type: 'AgentRegistered', data }]);
    const hidden = await administrator.client.post(`/agents/${elsewhere}/disable`);
    expect(hidden.status).to.equal(404);
  });
});
