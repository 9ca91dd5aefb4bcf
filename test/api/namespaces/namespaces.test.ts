import { expect } from 'chai';
import { streams } from '../../../domain/streams.ts';
import type { ApiClient } from '../../support/api-client.ts';
import { EventStream } from '../../support/event-stream.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { waitingRun } from '../endpoints/runs/waiting-run.ts';
import { agentIn, allScopes } from './agent-in.ts';

const task = (created_by: string) => ({
  title: 'Report',
  description: 'Counts the orders.',
  schedule_kind: 'cron',
  schedule_expr: '0 * * * *',
  created_by,
  payload: { pipeline: [{ uses: 'echo' }] },
});

describe('a namespace', () => {
  const api = useRunningApi();
  const admin = () => api().admin.client;

  it('is created, listed after default, described again, and unique by name', async () => {
    const made = await admin().post('/namespaces', { name: 'books', description: 'The books' });
    expect(made.status, made.text).to.equal(201);
    expect(made.header('location')).to.equal('/namespaces/books');
    expect((await admin().post('/namespaces', { name: 'books' })).status).to.equal(409);
    const listed = await admin().get('/namespaces');
    expect(listed.at('items.0.name')).to.equal('default');
    expect(listed.at('items.1.name')).to.equal('books');
    const changed = await admin().put('/namespaces/books', { description: null });
    expect(changed.at('description')).to.equal(null);
    expect((await admin().get('/namespaces/other')).status).to.equal(404);
    const described = await admin().put('/namespaces/default', { description: 'Everybody' });
    expect(described.status, described.text).to.equal(200);
  });

  it('limits lists, statistics and secrets that an admin narrows to it', async () => {
    await admin().post('/namespaces', { name: 'narrow' });
    const shown = await admin().get('/namespaces/narrow');
    expect([shown.status, shown.at('name')], shown.text).to.deep.equal([200, 'narrow']);
    expect(shown.header('etag')).to.equal('"0"');
    const { id, client } = await agentIn(api(), 'narrow');
    const made = (await client.post('/tasks', task(id))).textAt('id');
    const elsewhere = (await admin().post('/tasks', task(api().admin.id))).textAt('id');
    const ids = async (path: string): Promise<readonly unknown[]> => {
      const answer = await admin().get(path);
      expect(answer.status, `${path} ${answer.text}`).to.equal(200);
      const { items = answer.json } = answer.json as { readonly items?: unknown };
      return (items as readonly { readonly id?: unknown }[]).map((each) => each.id);
    };
    expect(await ids('/agents?namespace=narrow')).to.deep.equal([id]);
    expect(await ids('/tasks?namespace=narrow')).to.deep.equal([made]);
    expect(await ids('/workers?namespace=narrow')).to.deep.equal([]);
    for (const path of ['/topics', '/stats/summary']) {
      expect((await admin().get(`${path}?namespace=narrow`)).status, path).to.equal(200);
    }
    const statsOf = async (of: string): Promise<number> =>
      (await admin().get(`/task/${of}/stats?namespace=narrow`)).status;
    expect([await statsOf(made), await statsOf(elsewhere)]).to.deep.equal([200, 404]);
    const secret = '/secrets/NARROW?namespace=narrow';
    expect((await admin().put(secret, { value: 'hush-hush' })).status).to.equal(201);
    expect((await admin().get(secret)).at('namespace')).to.equal('narrow');
    expect((await admin().get('/secrets/NARROW?namespace=default')).status).to.equal(404);
    expect((await admin().delete(secret)).status).to.equal(200);
  });

  it('can be deleted only without agents, and its name cannot be used again', async () => {
    await admin().post('/namespaces', { name: 'shortlived' });
    const { id } = await agentIn(api(), 'shortlived');
    const refused = await admin().delete('/namespaces/shortlived');
    expect(refused.status, refused.text).to.equal(409);
    // Agents can still be added to it.
    await agentIn(api(), 'shortlived', allScopes, 'second').then(({ id: second }) =>
      admin().delete(`/agents/${second}`),
    );
    expect((await admin().delete(`/agents/${id}`)).status).to.equal(200);
    expect((await admin().delete('/namespaces/shortlived')).status).to.equal(200);
    expect((await admin().get('/namespaces/shortlived')).status).to.equal(404);
    const again = await admin().post('/namespaces', { name: 'shortlived' });
    expect(again.status).to.equal(409);
    expect(again.text).to.include('was deleted');
    const late = { name: 'late', scopes: [], namespace: 'shortlived' };
    expect((await admin().post('/agents', late)).status).to.equal(404);
    expect((await admin().delete('/namespaces/default')).status).to.equal(409);
  });

  it('takes no agents while it is being deleted, and is deleted when the command is repeated', async () => {
    await admin().post('/namespaces', { name: 'closing' });
    await api().append(streams.namespace('closing'), [{ type: 'NamespaceClosed', data: {} }]);
    const late = { name: 'late', scopes: [], namespace: 'closing' };
    expect((await admin().post('/agents', late)).status).to.equal(409);
    expect((await admin().delete('/namespaces/closing')).status).to.equal(200);
  });

  it('is deleted even if a secret is set at the same time, which is then rejected', async () => {
    await admin().post('/namespaces', { name: 'leaving' });
    const stream = streams.secret('leaving', 'LATE');
    const held = api().store.holdNext(stream);
    const setting = admin().put('/secrets/LATE?namespace=leaving', { value: 'hush-hush' });
    await held.arrived;
    expect((await admin().delete('/namespaces/leaving')).status).to.equal(200);
    held.release();
    const refused = await setting;
    expect(refused.status, refused.text).to.equal(404);
    const types = (await api().store.readStream(stream)).map(({ type }) => type);
    expect(types).to.deep.equal(['SecretSet', 'SecretDeleted']);
  });

  it('is not deleted while it has an older secret', async () => {
    await admin().post('/namespaces', { name: 'staying' });
    const path = '/secrets/KEPT?namespace=staying';
    expect((await admin().put(path, { value: 'hush-hush' })).status).to.equal(201);
    const { store } = api();
    const held = store.holdNext(streams.secret('staying', 'KEPT'));
    const setting = admin().put(path, { value: 'hush' });
    await held.arrived;
    const ending = store.holdNext(streams.namespace('staying'), 'NamespaceReopened');
    const deleting = admin().delete('/namespaces/staying');
    await ending.arrived;
    held.release();
    expect((await setting).status).to.equal(200);
    ending.release();
    expect((await deleting).status).to.equal(409);
    expect((await admin().get(path)).at('version')).to.equal(2);
  });

  it('has agent names of its own', async () => {
    for (const name of ['one', 'two']) await admin().post('/namespaces', { name });
    await agentIn(api(), 'one', [], 'same');
    await agentIn(api(), 'two', [], 'same');
    const twice = await admin().post('/agents', { name: 'same', scopes: [], namespace: 'one' });
    expect(twice.status).to.equal(409);
  });

  it('is not created when an agent is registered in an unknown one', async () => {
    const late = { name: 'late', scopes: [], namespace: 'nowhere' };
    expect((await admin().post('/agents', late)).status).to.equal(404);
  });
});

describe('an agent with namespace:admin', () => {
  const api = useRunningApi();
  const admin = () => api().admin.client;

  before(async () => {
    for (const name of ['east', 'west']) await admin().post('/namespaces', { name });
  });

  it('administers agents of its own namespace that have no more scopes than it has', async () => {
    const { client } = await agentIn(api(), 'east', ['namespace:admin', 'tasks:read'], 'chief');
    const made = await client.post('/agents', { name: 'clerk', scopes: ['tasks:read'] });
    expect(made.status, made.text).to.equal(201);
    expect(made.at('namespace')).to.equal('east');
    const path = `/agents/${made.textAt('id')}`;
    expect((await client.post(`${path}/credentials`, {})).status).to.equal(200);
    const statusOf = async (body: object) => (await client.post('/agents', body)).status;
    expect(await statusOf({ name: 'a', scopes: ['tasks:write'] })).to.equal(403);
    expect(await statusOf({ name: 'b', scopes: ['admin'] })).to.equal(403);
    expect(await statusOf({ name: 'c', scopes: [], namespace: 'west' })).to.equal(404);
    expect(await statusOf({ name: 'd', scopes: [], namespace: 'default' })).to.equal(404);
    expect((await client.put(path, { scopes: ['admin'] })).status).to.equal(403);
    expect((await client.delete(path)).status).to.equal(200);
  });

  it('cannot change an agent with more scopes than it has', async () => {
    const { client } = await agentIn(api(), 'west', ['namespace:admin'], 'chief');
    const { id } = await agentIn(api(), 'west', ['tasks:write'], 'writer');
    expect((await client.put(`/agents/${id}`, { name: 'mine' })).status).to.equal(403);
    expect((await client.post(`/agents/${id}/credentials`, {})).status).to.equal(403);
    expect((await client.delete(`/agents/${id}`)).status).to.equal(403);
  });

  it('cannot hold the service, because ops has no effect outside default', async () => {
    const given = { name: 'op', scopes: ['ops'], namespace: 'west' };
    expect((await admin().post('/agents', given)).status).to.equal(400);
  });
});

describe('the :own variant of a scope', () => {
  const api = useRunningApi();
  const ownScopes = ['tasks:read:own', 'runs:read:own', 'tasks:write'];

  it('shows an agent only the approvals of its own tasks', async () => {
    const [one, other] = [await api().signIn(ownScopes), await api().signIn(ownScopes)];
    const asked = { kind: 'approval', message: 'Pay?', on_timeout: 'fail' } as const;
    const { wait } = await waitingRun(api(), asked, task('').payload, one);
    const read = async (client: ApiClient) => {
      const list = await client.get(`/approvals?after=${await api().store.head()}`);
      return [list.at('total'), (await client.get(`/approvals/${wait}`)).status];
    };
    expect(await read(one.client)).to.deep.equal([1, 200]);
    expect(await read(other.client)).to.deep.equal([0, 404]);
  });

  it('streams and exports only its own runs', async () => {
    const [one, other] = [await api().signIn(ownScopes), await api().signIn(ownScopes)];
    const id = (await one.client.post('/tasks', task(one.id))).textAt('id');
    const watch = (path: string, { client }: SignedIn) =>
      EventStream.open(`${api().url}${path}`, client.token);
    const [mine, foreign] = [await watch('/runs/live', one), await watch('/runs/live', other)];
    const ofTask = await watch(`/tasks/${id}/live`, other);
    const run = (await one.client.post(`/tasks/${id}/run_now`, {})).textAt('details.run_id');
    const theirs = (await other.client.post('/tasks', task(other.id))).textAt('id');
    await other.client.post(`/tasks/${theirs}/run_now`, {});
    await Promise.all([mine.named('run.requested'), foreign.named('run.requested')]);
    const tasksOf = ({ changes }: EventStream) =>
      changes.map(({ data }) => (data['run'] as { readonly task_id: string }).task_id);
    expect([tasksOf(mine), tasksOf(foreign)]).to.deep.equal([[id], [theirs]]);
    expect(ofTask.status).to.equal(404);
    for (const stream of [mine, foreign, ofTask]) stream.close();
    const path = `/runs/export?after=${await api().store.head()}`;
    expect((await one.client.get(path)).text).to.contain(run);
    const exported = await other.client.get(path);
    expect(exported.status).to.equal(200);
    expect(exported.text).to.not.contain(run);
    expect((await other.client.get(`/runs/export?cursor=${run}`)).status).to.equal(400);
  });

  it('shows an agent only its own tasks and their runs', async () => {
    const scopes = ['tasks:read:own', 'runs:read:own', 'tasks:write'];
    const [one, other] = [await api().signIn(scopes), await api().signIn(scopes)];
    const made = await one.client.post('/tasks', task(one.id));
    const id = made.textAt('id');
    const ran = await one.client.post(`/tasks/${id}/run_now`, {});
    const run = ran.textAt('details.run_id');
    for (const path of [
      `/tasks/${id}`,
      `/runs/${run}`,
      `/task/${id}/latest`,
      `/task/${id}/stats`,
    ]) {
      expect((await one.client.get(path)).status, path).to.equal(200);
      expect((await other.client.get(path)).status, path).to.equal(404);
      // Even after the owner's response was cached.
      expect((await other.client.get(path)).status, path).to.equal(404);
    }
    for (const path of ['/tasks', '/runs', '/runs?state=queued']) {
      expect((await one.client.get(path)).at('total'), path).to.equal(1);
      expect((await other.client.get(path)).at('total'), path).to.equal(0);
    }
    expect((await one.client.get('/topics')).status).to.equal(403);
  });
});
