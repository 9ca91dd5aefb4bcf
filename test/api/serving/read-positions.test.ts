import { expect } from 'chai';
import { streams } from '../../../domain/streams.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

describe('the minimum position of a read of the log', () => {
  const api = useRunningApi();
  let paths: readonly string[];
  before(async () => {
    const { client, id } = api().admin;
    const task = (await client.post('/tasks', plainTask(id))).textAt('id');
    paths = [
      `/tasks/${task}/history`,
      `/streams/${streams.task(task)}`,
      '/streams',
      '/operations',
      '/projections',
      '/replays',
      `/tasks/${task}/explain?at=2026-01-01T00:00:00Z`,
    ];
  });
  const read = (path: string, after: string) =>
    api().admin.client.get(`${path}${path.includes('?') ? '&' : '?'}after=${after}`);

  it('is one that exists in the log', async () => {
    const head = await api().store.head();
    for (const path of paths) expect((await read(path, head)).status, path).to.equal(200);
  });

  it('is rejected if it does not exist, as in reads of views', async () => {
    const head = await api().store.head();
    const beyond = head.replace(/^./, '9');
    // Of the right width, and before the end as a string.
    const other = head.replace(/.$/, 'a').replace(/[1-9]/g, '0');
    for (const path of [...paths, '/tasks']) {
      for (const after of ['x', other, beyond, 'a&after=b']) {
        const refused = await read(path, after);
        expect(refused.status, `${path} ${after}`).to.equal(400);
        expect(refused.at('details.field')).to.equal('after');
      }
    }
  });

  it('is rejected by the same rule wherever a position is accepted', async () => {
    const { client } = api().admin;
    const none = '000000000000000a';
    const headers = { 'last-event-id': none };
    const past = paths[0]?.replace('/history', '');
    const answers = [
      await client.post('/replays', { name: 'none', until: none }),
      await client.get(`${past}?as_of=${none}`),
      await client.get('/runs/live', { headers }),
      await client.get('/audit/live', { headers }),
    ];
    expect(answers.map(({ status }) => status)).to.deep.equal([400, 400, 400, 400]);
    const fields = answers.map((answer) => answer.at('details.field'));
    expect(fields).to.deep.equal(['until', 'as_of', 'Last-Event-ID', 'Last-Event-ID']);
  });
});

describe('the minimum position of a read of views', () => {
  const api = useRunningApi();
  let caller: SignedIn;

  before(async () => {
    caller = await api().signIn(['tasks:read', 'tasks:write']);
  });

  it('is reached even if the last events belong to other views', async () => {
    const other = await api().signIn(['runs:read']);
    for (let times = 0; times < 5; times += 1) {
      const created = await caller.client.post('/tasks', plainTask(caller.id));
      const after = created.header('X-Event-Position');
      const shown = await other.client.get(`/runs?limit=1&after=${after}`);
      expect(shown.header('X-Read-Position') >= after).to.equal(true);
    }
  });

  it('prevents an explanation by views that have not reached it', async () => {
    const byEvent = { schedule_kind: 'event', schedule_expr: 'never.published' };
    const made = await caller.client.post('/tasks', { ...plainTask(caller.id), ...byEvent });
    const at = new Date(api().clock.now()).toISOString();
    const path = `/tasks/${made.textAt('id')}/explain?at=${at}`;
    const after = made.header('X-Event-Position');
    expect((await caller.client.get(`${path}&after=${after}`)).status).to.equal(200);
    api().waiting.timesOut = true;
    const late = await caller.client.get(`${path}&after=${after}`);
    const withoutAfter = await caller.client.get(path);
    api().waiting.timesOut = false;
    expect([late.status, late.at('error')]).to.deep.equal([503, 'unavailable']);
    expect(late.textAt('message')).to.match(/^the view has not reached /);
    expect(withoutAfter.status).to.equal(200);
  });
});
