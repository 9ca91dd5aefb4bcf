import { expect } from 'chai';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('the agents of the HTTP interface', () => {
  const api = useRunningApi();
  const register = async (name: string, scopes: readonly string[] = ['tasks:read']) => {
    const created = await api().admin.client.post('/agents', { name, scopes });
    expect(created.status, created.text).to.equal(201);
    return { id: created.textAt('id'), created };
  };

  it('rejects a webhook URL with a password, and suggests the signature instead', async () => {
    const body = { name: 'Grace', scopes: [], webhook_url: 'https://u:pass-4711@a.example/' };
    const refused = await api().admin.client.post('/agents', body);
    expect([refused.status, refused.at('details.field')]).to.deep.equal([400, 'webhook_url']);
    expect(refused.textAt('message')).to.match(/signature/);
    expect(refused.text).to.not.contain('pass-4711');
  });

  it('registers an agent, and shows it immediately', async () => {
    const { admin } = api();
    const body = {
      name: 'Ada',
      scopes: ['tasks:read', 'x'],
      webhook_url: 'https://ada.example/hook?x=1',
    };
    const created = await admin.client.post('/agents', body);
    expect(created.status, created.text).to.equal(201);
    const id = created.textAt('id');
    expect(created.header('Location')).to.equal(`/agents/${id}`);
    expect(created.json).to.have.all.keys(
      'id',
      'name',
      'scopes',
      'webhook_url',
      'disabled',
      'created_at',
      'updated_at',
    );
    expect(created.json).to.deep.include(body);
    const shown = await admin.client.get(`/agents/${id.toUpperCase()}`);
    expect(shown.json).to.deep.equal(created.json);
    expect(shown.header('ETag')).to.equal('"0"');
    expect(created.header('ETag')).to.equal('"0"');
  });

  it('shows an agent to itself, whatever its scopes, but to others only with a scope', async () => {
    const self = await api().signIn([]);
    const other = await api().signIn(['tasks:read']);
    const shown = await self.client.get(`/agents/${self.id}`);
    expect(shown.status, shown.text).to.equal(200);
    expect(shown.json).to.deep.equal((await api().admin.client.get(`/agents/${self.id}`)).json);
    const refused = await other.client.get(`/agents/${self.id}`);
    expect(refused.status).to.equal(403);
    const needed = ['admin', 'namespace:admin', 'audit:read'];
    expect(refused.at('details.required_scopes')).to.deep.equal(needed);
    const past = await self.client.get(`/agents/${self.id}?as_of=${new Date().toISOString()}`);
    expect([past.status, past.at('details.required_scopes')]).to.deep.equal([403, ['audit:read']]);
  });

  it('returns the list as a bare array, newest first, with the total count', async () => {
    const { admin } = api();
    for (const name of ['list-1', 'list-2', 'list-3']) await register(name, [`for:${name}`]);
    const listed = await admin.client.get('/agents?name_filter=LIST-&limit=2');
    expect(listed.status).to.equal(200);
    expect(listed.list.map(({ name }) => name)).to.deep.equal(['list-3', 'list-2']);
    expect(listed.header('X-Total-Count')).to.equal('3');
    const rest = await admin.client.get('/agents?name_filter=list-&limit=2&offset=2');
    expect(rest.list.map(({ name }) => name)).to.deep.equal(['list-1']);
    const scoped = await admin.client.get('/agents?scope_filter=for:list-2');
    expect(scoped.list.map(({ name }) => name)).to.deep.equal(['list-2']);
  });

  it('changes an agent, and releases its old name', async () => {
    const { admin } = api();
    const { id } = await register('before');
    const changed = await admin.client.put(`/agents/${id}`, { name: 'after', webhook_url: null });
    expect(changed.status, changed.text).to.equal(200);
    expect(changed.json).to.include({ name: 'after' });
    expect(changed.header('ETag')).to.equal('"1"');
    expect((await admin.client.get(`/agents/${id}`)).json).to.deep.equal(changed.json);
    await register('before');
    const taken = await admin.client.post('/agents', { name: 'after', scopes: [] });
    expect(taken.status).to.equal(409);
  });

  it('checks If-Match before it reserves a name', async () => {
    const { admin } = api();
    const { id } = await register('matched');
    await register('occupied');
    const stale = { headers: { 'if-match': '"4"' } };
    for (const name of ['occupied', 'free']) {
      const refused = await admin.client.put(`/agents/${id}`, { name }, stale);
      expect(refused.status, name).to.equal(412);
    }
    await register('free');
  });

  it('rejects a name that is in use', async () => {
    const { admin } = api();
    await register('one');
    const second = await register('two');
    const refusals = [
      await admin.client.post('/agents', { name: 'one', scopes: [] }),
      await admin.client.put(`/agents/${second.id}`, { name: 'one' }),
    ];
    for (const refused of refusals) {
      expect(refused.status).to.equal(409);
      expect(refused.at('details.field')).to.equal('name');
    }
  });

  it('rejects a name with leading or trailing spaces, because it would look like another name', async () => {
    const { client } = api().admin;
    const { id } = await register('looks alike');
    for (const name of [
      ' looks alike',
      'looks alike ',
      '\tlooks alike',
      'looks alike\u00a0',
      ' ',
    ]) {
      for (const answer of [
        await client.post('/agents', { name, scopes: [] }),
        await client.put(`/agents/${id}`, { name }),
      ]) {
        expect(answer.status, JSON.stringify(name)).to.equal(400);
        expect(answer.at('details.field')).to.equal('name');
        expect(answer.at('details.issue')).to.match(/without spaces at either end$/);
      }
    }
    expect((await client.put(`/agents/${id}`, { name: 'a' })).status).to.equal(200);
    expect((await client.post('/agents', { name: '', scopes: [] })).at('details.issue')).to.equal(
      'must not be empty',
    );
  });

  it('rejects names and secrets that are not well-formed Unicode, because two of them could collide', async () => {
    const { admin } = api();
    const named = await admin.client.post('/agents', { name: 'reader-\ud800', scopes: [] });
    expect(named.status).to.equal(400);
    expect(named.at('details.field')).to.equal('name');
    const agent_secret = 'sixteen characters \udfff';
    const given = await admin.client.post(`/agents/${admin.id}/credentials`, { agent_secret });
    expect(given.status).to.equal(400);
    expect(given.at('details.field')).to.equal('agent_secret');
  });

  it('registers a name once if many request it concurrently', async () => {
    const { admin } = api();
    const body = { name: 'coveted', scopes: [] };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => admin.client.post('/agents', body)),
    );
    expect(answers.map(({ status }) => status).sort()).to.deep.equal([
      201,
      ...Array<number>(7).fill(409),
    ]);
  });

  it('releases a name after a minute if a crash left it without an agent', async () => {
    const { admin } = api();
    api().store.failNext('agent-');
    const body = { name: 'left-behind', scopes: [] };
    const headers = { 'idempotency-key': 'the slow creator' };
    const failed = await admin.client.post('/agents', body, { headers });
    expect(failed.status).to.equal(503);
    expect((await admin.client.post('/agents', body)).status).to.equal(409);
    api().clock.shift(61_000);
    const { id } = await register('left-behind');
    const late = await admin.client.post('/agents', body, { headers });
    expect(late.status, late.text).to.equal(409);
    expect((await admin.client.get('/agents?name_filter=left-behind')).at('0.id')).to.equal(id);
  });

  it('completes an interrupted registration when it is repeated', async () => {
    const { admin } = api();
    api().store.failNext('agent-');
    const body = { name: 'completed', scopes: [] };
    const headers = { 'idempotency-key': 'completed' };
    expect((await admin.client.post('/agents', body, { headers })).status).to.equal(503);
    const second = await admin.client.post('/agents', body, { headers });
    expect(second.status, second.text).to.equal(201);
    const listed = await admin.client.get('/agents?name_filter=completed');
    expect(listed.header('X-Total-Count')).to.equal('1');
    expect(listed.at('0.id')).to.equal(second.at('id'));
  });

  it('changes the ETag with a new secret', async () => {
    const { admin } = api();
    const { id } = await register('hidden');
    const given = await admin.client.post(`/agents/${id}/credentials`);
    expect(given.status, given.text).to.equal(200);
    expect(given.json).to.have.all.keys('agent_id', 'agent_secret', 'message');
    expect(given.textAt('agent_secret')).to.have.length.of.at.least(32);
    const shown = await admin.client.get(`/agents/${id}`);
    expect(shown.header('ETag')).to.equal('"1"');
    expect(shown.text).to.not.contain('secret');
    const match = { headers: { 'if-match': shown.header('ETag') } };
    expect((await admin.client.put(`/agents/${id}`, { scopes: [] }, match)).status).to.equal(200);
    expect((await admin.client.put(`/agents/${id}`, { scopes: ['x'] }, match)).status).to.equal(
      412,
    );
    const foreign = { headers: { 'if-match': '"of-something-else"' } };
    const refused = await admin.client.put(`/agents/${id}`, { scopes: ['x'] }, foreign);
    expect(refused.status).to.equal(412);
    expect(refused.textAt('message')).to.match(
      /is at revision 2, not the one that the entity tag names$/,
    );
    expect(refused.at('details')).to.deep.equal({ expected: '"of-something-else"', actual: 2 });
  });

  it('writes no secret to the log or an event', async () => {
    const { admin } = api();
    const { id } = await register('discreet');
    const agent_secret = 'correct-horse-battery-staple';
    await admin.client.post(`/agents/${id}/credentials`, { agent_secret });
    await admin.client.post('/agents/auth/token', { agent_id: id, agent_secret });
    api().store.failNext('agent-', 'before');
    await admin.client.post(`/agents/${id}/credentials`, { agent_secret });
    const events = JSON.stringify(await api().store.readAll('', 1000));
    expect(events).to.not.contain(agent_secret);
    expect(api().logged.join('')).to.not.contain(agent_secret);
  });

  it('removes an agent and releases its name', async () => {
    const { admin } = api();
    const { id } = await register('gone');
    const removed = await admin.client.delete(`/agents/${id}`);
    expect(removed.status, removed.text).to.equal(200);
    expect(removed.json).to.deep.include({ success: true, details: { agent_id: id } });
    for (const answer of [
      await admin.client.get(`/agents/${id}`),
      await admin.client.delete(`/agents/${id}`),
      await admin.client.put(`/agents/${id}`, { scopes: [] }),
      await admin.client.post(`/agents/${id}/credentials`),
    ]) {
      expect(answer.status).to.equal(404);
      expect(answer.at('details')).to.deep.equal({ resource: 'agent', id });
    }
    await register('gone');
  });

  it('does not take the scope to register agents from the last admin', async () => {
    const { admin } = api();
    const path = `/agents/${admin.id}`;
    const refused = await admin.client.put(path, { scopes: ['tasks:read'] });
    expect(refused.status).to.equal(409);
    expect(refused.at('details')).to.deep.equal({ agent_id: admin.id });
    const second = await api().signIn(['admin']);
    expect((await second.client.put(path, { scopes: ['ops'] })).status).to.equal(200);
    expect((await second.client.put(path, { scopes: ['admin'] })).status).to.equal(200);
    await admin.client.delete(`/agents/${second.id}`);
  });

  it('does not let agents remove themselves', async () => {
    const { admin } = api();
    expect((await admin.client.delete(`/agents/${admin.id}`)).status).to.equal(409);
    const other = await api().signIn(['admin']);
    expect((await other.client.delete(`/agents/${other.id}`)).status).to.equal(409);
    expect((await admin.client.delete(`/agents/${other.id}`)).status).to.equal(200);
  });

  it('does not remove an agent with live tasks unless they are canceled with it', async () => {
    const { admin } = api();
    const owner = await api().signIn(['tasks:write', 'tasks:read']);
    const task = await owner.client.post('/tasks', plainTask(owner.id));
    const paused = await owner.client.post('/tasks', plainTask(owner.id));
    await owner.client.post(`/tasks/${paused.textAt('id')}/pause`);
    const run = await owner.client.post(`/tasks/${task.textAt('id')}/run_now`);
    const refused = await admin.client.delete(`/agents/${owner.id}`);
    expect(refused.status, refused.text).to.equal(409);
    expect(refused.at('details.live_tasks')).to.equal(2);
    expect(refused.textAt('message')).to.match(/owns 2 live tasks; \?cancel_tasks=true cancels/);
    const removed = await admin.client.delete(`/agents/${owner.id}?cancel_tasks=true`);
    expect(removed.status, removed.text).to.equal(200);
    for (const { textAt } of [task, paused].map((each) => ({ textAt: each.textAt.bind(each) }))) {
      const shown = await admin.client.get(`/tasks/${textAt('id')}`);
      expect(shown.at('status')).to.equal('canceled');
    }
    const shown = await admin.client.get(`/runs/${run.textAt('details.run_id')}`);
    expect(shown.at('state')).to.equal('canceled');
    const [, canceled] = await api().store.readStream(streams.task(task.textAt('id')));
    expect(canceled?.metadata.actor).to.equal(admin.id);
  });

  it('cancels the tasks of a removed agent concurrently', async () => {
    const { admin } = api();
    const owner = await api().signIn(['tasks:write']);
    const created = [
      await owner.client.post('/tasks', plainTask(owner.id)),
      await owner.client.post('/tasks', plainTask(owner.id)),
    ];
    const held = created.map((each) =>
      api().store.holdNext(streams.task(each.textAt('id')), 'TaskCanceled'),
    );
    const removing = admin.client.delete(`/agents/${owner.id}?cancel_tasks=true`);
    await Promise.all(held.map(({ arrived }) => arrived));
    for (const each of held) each.release();
    expect((await removing).status).to.equal(200);
  });

  it('cancels a task that is created while its agent is being removed', async () => {
    const { admin, store } = api();
    const owner = await api().signIn(['tasks:write']);
    const held = store.holdNext(streams.agent(owner.id), 'AgentRemoved');
    const removing = admin.client.delete(`/agents/${owner.id}`);
    await held.arrived;
    const created = await owner.client.post('/tasks', plainTask(owner.id));
    expect(created.status, created.text).to.equal(201);
    held.release();
    expect((await removing).status).to.equal(200);
    const shown = await admin.client.get(`/tasks/${created.textAt('id')}`);
    expect(shown.at('status')).to.equal('canceled');
  });

  it('creates no task if its agent is removed before the task is in the log', async () => {
    const { admin, store } = api();
    const owner = await api().signIn(['tasks:write']);
    const key = `a key of ${owner.id}`;
    const held = store.holdNext('task-', 'TaskCreated');
    const creating = owner.client.post('/tasks', plainTask(owner.id), {
      headers: { 'idempotency-key': key },
    });
    await held.arrived;
    expect((await admin.client.delete(`/agents/${owner.id}`)).status).to.equal(200);
    held.release();
    const refused = await creating;
    expect(refused.status, refused.text).to.equal(409);
    const path = `/tasks/${refused.textAt('details.task_id')}?after=${await store.head()}`;
    expect((await admin.client.get(path)).at('status')).to.equal('canceled');
  });

  it('does not reactivate a task of a removed agent until it has a new owner', async () => {
    const { admin } = api();
    const owner = await api().signIn(['tasks:write']);
    const once = { schedule_kind: 'once', schedule_expr: '2090-01-01T00:00:00Z' };
    const task = await owner.client.post('/tasks', { ...plainTask(owner.id), ...once });
    const id = task.textAt('id');
    await api().append(streams.fires(id), [
      {
        type: 'Fired',
        data: {
          nominal: '2090-01-01T00:00:00.000Z',
          run_id: newId(0),
          next_fire_at: null,
          task_revision: 0,
          fire_count: 1,
        },
      },
    ]);
    const path = `/tasks/${id}`;
    expect((await admin.client.delete(`/agents/${owner.id}`)).status).to.equal(200);
    const again = { schedule_expr: '2091-01-01T00:00:00Z' };
    const refused = await admin.client.put(path, again);
    expect(refused.status, refused.text).to.equal(409);
    expect(refused.textAt('message')).to.match(/^the agent of the task was removed/);
    const handedOver = await admin.client.put(path, { ...again, created_by: admin.id });
    expect(handedOver.status, handedOver.text).to.equal(200);
  });

  it('releases the name that a removed agent was about to get', async () => {
    const { admin, store } = api();
    const owner = await api().signIn(['tasks:read']);
    const held = store.holdNext(streams.agent(owner.id), 'AgentUpdated');
    const renaming = admin.client.put(`/agents/${owner.id}`, { name: 'soon free' });
    await held.arrived;
    expect((await admin.client.delete(`/agents/${owner.id}`)).status).to.equal(200);
    held.release();
    expect((await renaming).status).to.equal(404);
    const named = await admin.client.post('/agents', { name: 'soon free', scopes: [] });
    expect(named.status, named.text).to.equal(201);
  });
});
