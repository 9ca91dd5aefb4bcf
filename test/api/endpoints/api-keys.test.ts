import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';
import type { ApiClient } from '../../support/api-client.ts';

describe('API keys', () => {
  const api = useRunningApi();
  const make = async (client: ApiClient, agent: string, fields: object = {}) => {
    const made = await client.post(`/agents/${agent}/keys`, { name: 'deploy', ...fields });
    expect(made.status, made.text).to.equal(201);
    return { id: made.textAt('id'), made, client: client.as(made.textAt('key')) };
  };

  it('call the service for their agent, with all of its scopes unless fewer are given', async () => {
    const agent = await api().signIn(['tasks:read', 'runs:read']);
    const whole = await make(agent.client, agent.id);
    expect(whole.made.textAt('key')).to.match(/^svck_[A-Za-z0-9_-]{43}$/);
    expect((await whole.client.get('/tasks')).status).to.equal(200);
    const part = await make(agent.client, agent.id, { scopes: ['runs:read'] });
    expect((await part.client.get('/runs')).status).to.equal(200);
    const refused = await part.client.get('/tasks');
    expect(refused.status).to.equal(403);
    expect(refused.at('details.granted_scopes')).to.deep.equal(['runs:read']);
  });

  it('are listed with their last use, and never shown again', async () => {
    const agent = await api().signIn(['tasks:read']);
    const { id, made, client } = await make(agent.client, agent.id);
    const key = made.textAt('key');
    const before = await agent.client.get(`/agents/${agent.id}/keys`);
    expect(before.at('items.0')).to.include({ id, name: 'deploy', last_used_at: null });
    await client.get('/tasks');
    await client.get('/tasks');
    await api().apiKeyUses.flush();
    const position = await api().store.head();
    const after = await agent.client.get(`/agents/${agent.id}/keys?after=${position}`);
    expect(after.at('items.0.last_used_at'), after.text).to.be.a('string');
    expect(after.text).to.not.contain(key);
    const uses = await api().store.readStream(`apikeyuse-${id}`, { limit: 10 });
    expect(uses).to.have.length(1);
    const log = await api().store.readStream(`apikey-${id}`, { limit: 10 });
    expect(JSON.stringify(log)).to.not.contain(key);
  });

  it('are listed for all agents in order of their expiry', async () => {
    const { admin } = api();
    const agent = await api().signIn(['tasks:read']);
    const expiring = async (expires_at: string): Promise<string> =>
      (await make(agent.client, agent.id, { expires_at })).id;
    const [later, soon] = [
      await expiring('2090-01-02T00:00:00Z'),
      await expiring('2090-01-01T00:00:00Z'),
    ];
    await make(agent.client, agent.id);
    const after = await api().store.head();
    const listed = await admin.client.get(`/agents/keys?until=2090-12-31T00:00:00Z&after=${after}`);
    const found = listed.at('items') as readonly { readonly id: string }[];
    expect(found.map(({ id }) => id).filter((id) => id === soon || id === later)).to.deep.equal([
      soon,
      later,
    ]);
    const first = await admin.client.get('/agents/keys?until=2090-01-01T00:00:00Z');
    expect(first.text).to.contain(soon).and.not.contain(later);
    const elsewhere = await admin.client.get('/agents/keys?namespace=elsewhere');
    expect(elsewhere.at('total')).to.equal(0);
    expect((await agent.client.get('/agents/keys')).status).to.equal(403);
  });

  it('record their use once a minute, and keep only the last', async () => {
    const agent = await api().signIn(['tasks:read']);
    const { id, client } = await make(agent.client, agent.id);
    for (let minute = 0; minute < 3; minute += 1) {
      for (let time = 0; time < 3; time += 1) await client.get('/tasks');
      await api().apiKeyUses.flush();
      api().clock.shift(60_000);
    }
    const uses = await api().store.readStream(`apikeyuse-${id}`, { limit: 10 });
    expect(uses.map(({ revision }) => revision)).to.deep.equal([2]);
  });

  it('stop working when they are revoked, when they expire, and when their agent is removed or disabled', async () => {
    const { admin, clock } = api();
    const agent = await api().signIn(['tasks:read']);
    const statusOf = async (client: ApiClient) => (await client.get('/tasks')).status;
    const revoked = await make(agent.client, agent.id);
    const path = `/agents/${agent.id}/keys/${revoked.id}`;
    expect((await agent.client.delete(path)).status).to.equal(200);
    expect(await statusOf(revoked.client)).to.equal(401);
    const listed = await agent.client.get(`/agents/${agent.id}/keys`);
    expect(listed.at('items')).to.deep.equal([]);
    const expires_at = new Date(clock.now() + 60_000).toISOString();
    const expiring = await make(agent.client, agent.id, { expires_at });
    const lasting = await make(agent.client, agent.id);
    expect(await statusOf(expiring.client)).to.equal(200);
    clock.shift(60_000);
    expect(await statusOf(expiring.client)).to.equal(401);
    await admin.client.post(`/agents/${agent.id}/disable`);
    expect(await statusOf(lasting.client)).to.equal(401);
    await admin.client.post(`/agents/${agent.id}/enable`);
    expect(await statusOf(lasting.client)).to.equal(200);
    await admin.client.delete(`/agents/${agent.id}`);
    expect(await statusOf(lasting.client)).to.equal(401);
  });

  it('outlive new secrets, which end sessions', async () => {
    const { admin } = api();
    const agent = await api().signIn(['tasks:read']);
    const { client } = await make(agent.client, agent.id);
    await admin.client.post(`/agents/${agent.id}/credentials`);
    expect((await agent.client.get('/tasks')).status).to.equal(401);
    expect((await client.get('/tasks')).status).to.equal(200);
  });

  it('lose a scope when their agent does, and get it back with the agent', async () => {
    const { admin } = api();
    const agent = await api().signIn(['tasks:read', 'runs:read']);
    const { client } = await make(agent.client, agent.id, { scopes: ['runs:read'] });
    const grant = (scopes: readonly string[]) =>
      admin.client.put(`/agents/${agent.id}`, { scopes });
    await grant(['tasks:read']);
    expect((await client.get('/runs')).status).to.equal(403);
    await grant(['tasks:read', 'runs:read']);
    expect((await client.get('/runs')).status).to.equal(200);
  });

  it('cannot have scopes that their agent lacks, or give away more than they have', async () => {
    const agent = await api().signIn(['tasks:read', 'runs:read']);
    const path = `/agents/${agent.id}/keys`;
    const wide = await agent.client.post(path, { name: 'x', scopes: ['tasks:write', 'admin'] });
    expect([wide.status, wide.at('details.field')]).to.deep.equal([400, 'scopes']);
    const expires_at = new Date(api().clock.now() + 3_600_000).toISOString();
    const narrow = await make(agent.client, agent.id, { scopes: ['tasks:read'], expires_at });
    const wider = await narrow.client.post(path, { name: 'y', scopes: ['runs:read'] });
    expect([wider.status, wider.at('details.field')]).to.deep.equal([400, 'scopes']);
    const child = await make(narrow.client, agent.id);
    expect(child.made.at('scopes')).to.deep.equal(['tasks:read']);
    expect(child.made.at('expires_at')).to.equal(expires_at);
    const later = new Date(api().clock.now() + 7_200_000).toISOString();
    const longer = await narrow.client.post(path, { name: 'z', expires_at: later });
    expect([longer.status, longer.at('details.field')]).to.deep.equal([400, 'expires_at']);
    const past = await agent.client.post(path, { name: 'p', expires_at: '2020-01-01T00:00:00Z' });
    expect([past.status, past.at('details.field')]).to.deep.equal([400, 'expires_at']);
  });

  it('can be managed by their agent, and by administrators', async () => {
    const [one, other] = [await api().signIn(['tasks:read']), await api().signIn(['tasks:read'])];
    const { id } = await make(one.client, one.id);
    for (const refused of [
      await other.client.post(`/agents/${one.id}/keys`, { name: 'x' }),
      await other.client.get(`/agents/${one.id}/keys`),
      await other.client.delete(`/agents/${one.id}/keys/${id}`),
    ]) {
      expect(refused.status).to.equal(403);
    }
    // Nor through the path of another agent.
    const foreign = await other.client.delete(`/agents/${other.id}/keys/${id}`);
    expect(foreign.status).to.equal(404);
    const powerless = await api().signIn(['namespace:admin']);
    const refused = await powerless.client.post(`/agents/${one.id}/keys`, { name: 'x' });
    expect([refused.status, refused.textAt('message')]).to.deep.equal([
      403,
      'tasks:read is a scope of this agent, which only an agent that has it may change',
    ]);
    const administrator = await api().signIn(['namespace:admin', 'tasks:read']);
    const given = await make(administrator.client, one.id);
    expect(given.made.at('created_by')).to.equal(administrator.id);
    // The agent may read no other agent, but sees the name of the one that gave it the key.
    const { name } = (await api().admin.client.get(`/agents/${administrator.id}`)).json;
    const listed = await one.client.get(`/agents/${one.id}/keys`);
    expect(listed.at('items.0')).to.include({ created_by_name: name });
    expect(given.made.at('created_by_name')).to.equal(name);
    const path = `/agents/${one.id}/keys/${given.id}`;
    expect((await administrator.client.delete(path)).status).to.equal(200);
    const toAdmin = await administrator.client.post(`/agents/${api().admin.id}/keys`, {
      name: 'x',
    });
    expect(toAdmin.status).to.equal(403);
  });

  it('are created anew by each request, even with the same Idempotency-Key', async () => {
    const agent = await api().signIn(['tasks:read']);
    const headers = { 'idempotency-key': 'k1' };
    const ask = () => agent.client.post(`/agents/${agent.id}/keys`, { name: 'a' }, { headers });
    const [first, second] = [await ask(), await ask()];
    expect(first.textAt('key')).to.not.equal(second.textAt('key'));
    const { streams } = await api().store.listStreams({ prefix: 'idem-', limit: 100 });
    for (const { stream } of streams) {
      const events = await api().store.readStream(stream, { limit: 10 });
      expect(JSON.stringify(events)).to.not.contain(first.textAt('key'));
    }
  });

  it('count for their agent in the rate limit and the record of rejected requests', async () => {
    const agent = await api().signIn(['tasks:read']);
    const { id, client } = await make(agent.client, agent.id);
    await agent.client.delete(`/agents/${agent.id}/keys/${id}`);
    expect((await client.get('/tasks')).status).to.equal(401);
    await api().refusals.flush();
    const day = new Date(api().clock.now()).toISOString().slice(0, 10);
    const refused = await api().store.readStream(`refusals-${agent.id}-${day}`, { limit: 10 });
    expect(refused.at(-1)?.data).to.include({ status: 401, action: 'GET /tasks' });
  });

  it('that never existed are reported as unknown', async () => {
    const never = api().admin.client.as(`svck_${'a'.repeat(43)}`);
    const refused = await never.get('/tasks');
    expect(refused.status).to.equal(401);
    expect(refused.textAt('message')).to.match(/unknown, revoked or expired/);
  });
});
