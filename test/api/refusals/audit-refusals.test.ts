import { expect } from 'chai';
import { Refusals } from '../../../api/access/refusals.ts';
import { newId } from '../../../domain/ids.ts';
import { createTelemetry } from '../../../observability/create-telemetry.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { auditOf, type Item } from '../auditing.ts';
import { plainTask } from '../plain-task.ts';

describe('the audit of refused requests', () => {
  const api = useRunningApi();
  let auditor: SignedIn;
  let agent: SignedIn;
  before(async () => {
    auditor = await api().signIn(['audit:read']);
  });
  beforeEach(async () => {
    agent = await api().signIn(['tasks:read', 'tasks:write']);
  });
  const audit = (query: string): Promise<readonly Item[]> => auditOf(api(), auditor, query);
  async function makeTask(): Promise<string> {
    return (await agent.client.post('/tasks', plainTask(agent.id))).textAt('id');
  }

  it("records an agent's 403, 409 and 412 as the requested action", async () => {
    const id = await makeTask();
    const headers = { 'x-reason': 'I want to', 'x-request-id': 'refused-1' };
    await agent.client.post('/agents', { name: 'x', scopes: [] }, { headers });
    await agent.client.put(`/tasks/${id}`, { title: 'y' }, { headers: { 'if-match': '"9"' } });
    await agent.client.post(`/tasks/${id}/cancel`);
    await agent.client.post(`/tasks/${id}/pause`);
    const items = await audit(`actor=${agent.id}&type=CommandRefused`);
    const recorded = items.map(({ action, refusal }) => [refusal?.status, action]);
    expect(recorded).to.deep.equal([
      [409, 'POST /tasks/{id}/pause'],
      [412, 'PUT /tasks/{id}'],
      [403, 'POST /agents'],
    ]);
    const last = items.at(-1);
    expect(last).to.include({ outcome: 'refused', reason: 'I want to', source: '127.0.0.1' });
    expect(last).to.include({ correlation_id: 'refused-1' });
    expect(last?.refusal).to.include({ path: '/agents', count: 1 });
  });

  it('cuts a long reason after a complete character', async () => {
    const id = await makeTask();
    const reason = Buffer.from(`${'a'.repeat(499)}😀b`).toString('latin1');
    const other = agent.client.as(null);
    await agent.client.post('/agents/auth/revoke', { token: agent.client.token });
    const headers = { 'x-reason': reason, authorization: `Bearer ${agent.client.token ?? ''}` };
    const refused = await other.post(`/tasks/${id}/pause`, undefined, { headers });
    expect(refused.status).to.equal(401);
    const [item] = await audit(`actor=${agent.id}&type=CommandRefused`);
    expect(item).to.include({ reason: `${'a'.repeat(499)}😀` });
  });

  it('records 401 of a known agent with a revoked token or a wrong secret', async () => {
    await agent.client.post('/agents/auth/revoke', { token: agent.client.token });
    const body = plainTask(agent.id);
    expect((await agent.client.post('/tasks', body)).status).to.equal(401);
    const wrong = { agent_id: agent.id, agent_secret: 'wrong and long enough' };
    expect((await agent.client.post('/agents/auth/token', wrong)).status).to.equal(401);
    const items = await audit(`actor=${agent.id}&type=CommandRefused`);
    expect(items.map(({ action }) => action)).to.have.members([
      'POST /agents/auth/token',
      'POST /tasks',
    ]);
  });

  it('records nothing of strangers, and no 400 or 404', async () => {
    const head = await api().store.head();
    await agent.client.post('/tasks', plainTask(agent.id), { token: 'nonsense' });
    await agent.client.post('/agents/auth/token', { agent_id: newId(0) }, { token: null });
    await agent.client.post('/tasks', {});
    await agent.client.post(`/tasks/${newId(0)}/pause`);
    await api().refusals.flush();
    expect(await api().store.readAll(head, 10)).to.deep.equal([]);
  });

  it('records a refusal stored for an Idempotency-Key', async () => {
    const id = await makeTask();
    await agent.client.post(`/tasks/${id}/cancel`);
    const headers = { 'idempotency-key': newId(0) };
    const answer = await agent.client.post(`/tasks/${id}/pause`, undefined, { headers });
    expect(answer.status).to.equal(409);
    expect(await audit(`actor=${agent.id}&type=CommandRefused`)).to.have.lengthOf(1);
  });

  it('summarizes more than thirty in a minute', async () => {
    // All within one minute, whenever the test runs.
    api().clock.shift(60_000 - (api().clock.now() % 60_000));
    const tries = Array.from({ length: 50 }, () => agent.client.get('/agents'));
    for (const each of await Promise.all(tries)) expect(each.status).to.equal(403);
    await agent.client.delete(`/agents/${agent.id}`);
    await audit('');
    api().clock.shift(60_000);
    const items = await audit(`actor=${agent.id}&limit=100`);
    expect(items).to.have.lengthOf(32);
    const sums = items.filter(({ refusal }) => refusal?.path === null);
    expect(sums.map(({ action, refusal }) => [action, refusal?.count])).to.have.deep.members([
      ['GET /agents', 20],
      ['DELETE /agents/{agent_id}', 1],
    ]);
  });

  it('is written completely when the service stops', async () => {
    const { store, clock } = api();
    const telemetry = createTelemetry({ level: 'silent', destination: { write: () => {} } });
    const refusals = new Refusals({ store, clock, telemetry });
    const actor = newId(0);
    const now = clock.now();
    const context = { commandId: newId(0), actor, source: 's', correlationId: 'c', now };
    const refused = { action: 'POST /tasks', path: '/tasks', status: 403, code: 'forbidden' };
    for (let n = 0; n < 45; n += 1) refusals.note({ agentId: actor, ...refused, context });
    await refusals.close();
    const items = await audit(`actor=${actor}&limit=100`);
    expect(items).to.have.lengthOf(31);
    expect(items.map(({ refusal }) => refusal?.count)).to.include(15);
  });

  it('keeps what the log rejects, and writes it once', async () => {
    await agent.client.post('/agents', { name: 'x', scopes: [] });
    api().store.away = true;
    await api().refusals.flush();
    api().store.away = false;
    await api().refusals.flush();
    const items = await audit(`actor=${agent.id}&type=CommandRefused`);
    expect(items).to.have.lengthOf(1);
  });

  it("is written once if the log's response is lost, whatever else happens", async () => {
    await agent.client.post('/agents', { name: 'x', scopes: [] });
    api().store.failNext('refusals-', 'after');
    await api().refusals.flush();
    await agent.client.delete(`/agents/${agent.id}`);
    await api().refusals.flush();
    const items = await audit(`actor=${agent.id}&type=CommandRefused`);
    expect(items.map(({ action }) => action)).to.deep.equal([
      'DELETE /agents/{agent_id}',
      'POST /agents',
    ]);
  });
});
