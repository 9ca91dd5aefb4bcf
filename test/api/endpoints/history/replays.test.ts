import { expect } from 'chai';
import { toIso } from '../../../../domain/clock.ts';
import { MAX_REPLAYS } from '../../../../domain/operators/replays.ts';
import { newId } from '../../../../domain/ids.ts';
import { streams } from '../../../../domain/streams.ts';
import { request, success } from '../../../projections/recorded.ts';
import { useRunningApi, type SignedIn } from '../../../support/running-api.ts';
import { eventually } from '../../../support/signals.ts';
import { plainTask } from '../../plain-task.ts';

interface Item {
  readonly name: string;
  readonly state: string;
  readonly documents: Readonly<Record<string, number>> | null;
}

describe('views as of a time', () => {
  const api = useRunningApi();
  let reader: SignedIn;
  let task: string;
  /** Between the first run and the second. */
  let position: string;
  let instant: string;

  before(async () => {
    const { admin } = api();
    reader = await api().signIn(['runs:read', 'tasks:read', 'audit:read']);
    task = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    await runOnce();
    position = await api().store.head();
    instant = toIso(api().clock.now());
    api().clock.shift(5);
    await runOnce();
    await admin.client.put(`/tasks/${task}`, { title: 'renamed' });
  });

  const runOnce = (): Promise<void> =>
    api().append(streams.run(newId(api().clock.now())), [
      { type: 'RunRequested', data: request({ task_id: task, created_by: api().admin.id }) },
      {
        type: 'RunStarted',
        data: { worker: 'w', attempt: 1, leased_until: toIso(api().clock.now()) },
      },
      {
        type: 'RunSucceeded',
        data: success({ task_id: task, started_at: toIso(api().clock.now()) }),
      },
    ]);

  const all = async (): Promise<readonly Item[]> =>
    (await api().admin.client.get('/replays')).at('replays') as readonly Item[];
  const made = (name: string): Promise<void> =>
    eventually(async () => (await all()).find((each) => each.name === name)?.state === 'ready');
  const order = (name: string, until: string): Promise<unknown> =>
    api().admin.client.post('/replays', { name, until, keep_hours: 1 });

  it('are read beside the current views', async () => {
    await order('before', position);
    await made('before');
    const past = await reader.client.get('/runs?view=before');
    expect([past.at('total'), (await reader.client.get('/runs')).at('total')]).to.deep.equal([
      1, 2,
    ]);
    const tasks = await reader.client.get('/tasks?view=before');
    expect(tasks.at('items.0.title')).to.not.equal('renamed');
    expect(tasks.at('items.0.last_run_at')).to.equal(past.at('items.0.started_at'));
    const stats = await reader.client.get('/stats/summary?view=before');
    expect(stats.at('total_runs')).to.equal(1);
    const own = await reader.client.get(`/task/${task}/stats?view=before&days=2`);
    expect(own.at('total_runs')).to.equal(1);
    const agents = await api().admin.client.get('/agents?view=before');
    expect(agents.header('x-total-count')).to.equal('2');
    const [replay] = await all();
    expect(replay?.documents).to.include({ runs: 1, tasks: 1, agents: 2 });
  });

  it('can be read only by those who may read the audit', async () => {
    const { client } = await api().signIn(['runs:read', 'tasks:read']);
    for (const path of ['/runs', '/tasks', '/stats/summary', `/task/${task}/stats`]) {
      for (const name of ['before', 'nothing']) {
        const refused = await client.send('GET', `${path}?view=${name}`);
        expect(refused.status, path).to.equal(403);
        expect(refused.at('details.required_scopes')).to.deep.equal(['audit:read']);
      }
      expect((await client.get(path)).status).to.equal(200);
    }
  });

  it('take an instant, and include everything until then', async () => {
    await order('by_time', instant);
    await made('by_time');
    expect((await reader.client.get('/runs?view=by_time')).at('total')).to.equal(1);
  });

  it('equal the current views if the time is now', async () => {
    await order('present', await api().store.head());
    await made('present');
    const past = (await reader.client.get('/runs?view=present')).json;
    expect(past).to.deep.equal((await reader.client.get('/runs')).json);
    const tasks = (await reader.client.get('/tasks?view=present')).json;
    expect(tasks).to.deep.equal((await reader.client.get('/tasks')).json);
  });

  it('are refused for a used or unknown name, or if there are too many', async () => {
    const { client } = api().admin;
    const twice = await client.send('POST', '/replays', {
      body: { name: 'before', until: position },
    });
    expect(twice.status).to.equal(409);
    expect((await reader.client.send('GET', '/runs?view=nothing')).status).to.equal(404);
    expect((await reader.client.send('GET', '/runs?view=No')).status).to.equal(400);
    const names: string[] = [];
    for (let n = (await all()).length; n < MAX_REPLAYS; n += 1) {
      names.push(`more_${String(n)}`);
      await order(`more_${String(n)}`, position);
    }
    const body = { name: 'one_more', until: position };
    expect((await client.send('POST', '/replays', { body })).status).to.equal(409);
    for (const name of names) await client.delete(`/replays/${name}`);
  });

  it('are dropped on request, and when they expire', async () => {
    const dropped = await api().admin.client.delete('/replays/before');
    expect(dropped.at('details')).to.deep.equal({ name: 'before', done: true });
    expect((await reader.client.send('GET', '/runs?view=before')).status).to.equal(404);
    await order('before', position);
    await made('before');
    api().clock.shift(3_600_001);
    expect((await reader.client.send('GET', '/runs?view=before')).status).to.equal(404);
    // A command makes the service look for expired replays.
    await order('after_all', position);
    await eventually(async () => (await all()).map(({ name }) => name).join() === 'after_all');
  });
});
