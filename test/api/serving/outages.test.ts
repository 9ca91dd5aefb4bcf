import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

const MAX_RESPONSE_MS = 3000;

describe('the HTTP interface during an outage', () => {
  const api = useRunningApi();
  let task: string;
  before(async () => {
    const { admin } = api();
    task = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    await admin.client.get(`/tasks/${task}`);
  });
  afterEach(() => {
    api().store.away = false;
    api().views.away = false;
  });

  const unavailable = async (method: string, path: string, component: string, body?: object) => {
    const timed = async () => {
      const begun = performance.now();
      const answer = await api().admin.client.send(method, path, body ? { body } : {});
      return { answer, took: performance.now() - begun };
    };
    let { answer, took } = await timed();
    // The machine may be busy: a slow request must be slow again.
    if (took > MAX_RESPONSE_MS) ({ answer, took } = await timed());
    const what = `${method} ${path} ${answer.text}`;
    expect(took, what).to.be.lessThan(MAX_RESPONSE_MS);
    expect(answer.status, what).to.equal(503);
    expect(answer.at('error')).to.equal('unavailable');
    expect(answer.at('details.component'), what).to.equal(component);
    expect(answer.text).to.not.contain('svc-test');
    expect(Number(answer.header('Retry-After'))).to.be.at.least(1);
  };

  it('reports that the log is unavailable, for commands', async () => {
    const { admin } = api();
    api().store.away = true;
    for (const [method, path, body] of [
      ['POST', '/agents', { name: 'x', scopes: [] }],
      ['POST', '/agents/auth/token', { agent_id: admin.id }],
      ['POST', '/tasks', plainTask(admin.id)],
      ['PUT', `/tasks/${task}`, { title: 'x' }],
      ['POST', `/tasks/${task}/run_now`, undefined],
      ['POST', `/tasks/${task}/pause`, undefined],
      ['POST', `/tasks/${task}/cancel`, undefined],
      ['POST', '/events', { topic: 'a', payload: {}, source_agent_id: admin.id }],
    ] as const) {
      await unavailable(method, path, 'stream_store', body);
    }
  });

  it('still reads while the log is unavailable', async () => {
    const { client } = api().admin;
    expect((await client.get('/agents')).status).to.equal(200);
    api().store.away = true;
    for (const path of [
      '/agents',
      '/tasks',
      `/tasks/${task}`,
      '/runs',
      '/stats/summary',
      '/topics',
    ]) {
      expect((await client.get(path)).status, path).to.equal(200);
    }
  });

  it('reports that the read model is unavailable, for reads', async () => {
    api().views.away = true;
    for (const path of [
      '/agents',
      `/agents/${task}`,
      '/tasks',
      `/tasks/${task}`,
      '/runs',
      `/runs/${task}`,
      `/task/${task}/latest`,
      `/task/${task}/stats`,
      '/stats/summary',
      '/topics',
    ]) {
      await unavailable('GET', path, 'database');
    }
  });

  it('still accepts commands that need no view while the read model is unavailable', async () => {
    const { admin } = api();
    api().views.away = true;
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    expect(created.status, created.text).to.equal(201);
    const path = created.header('Location');
    expect((await admin.client.post(`${path}/run_now`)).status).to.equal(200);
    expect((await admin.client.post(`${path}/pause`)).status).to.equal(200);
    const event = { topic: 'a', payload: {}, source_agent_id: admin.id };
    expect((await admin.client.post('/events', event)).status).to.equal(202);
    await unavailable('GET', path, 'database');
  });

  it('works completely again afterwards', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', plainTask(admin.id));
    expect((await admin.client.get(created.header('Location'))).status).to.equal(200);
  });

  it('hides the cause from the client, and logs it', async () => {
    api().views.away = true;
    const answer = await api().admin.client.get('/tasks', {
      headers: { 'x-request-id': 'find-me' },
    });
    expect(answer.text).to.not.contain('the views are unavailable');
    const line = api().logged.find((each) => each.includes('find-me'));
    expect(line).to.contain('the views are unavailable').and.contain('"component":"database"');
  });
});

for (const production of [false, true]) {
  describe(`an internal error, ${production ? 'in production' : 'elsewhere'}`, () => {
    const api = useRunningApi({ production });

    it(`is returned ${production ? 'without' : 'with'} its stack trace, and logged completely`, async () => {
      const { store, admin } = api();
      const { append } = store;
      store.append = () => Promise.reject(new TypeError('a slip'));
      const answer = await admin.client.post('/tasks', plainTask(admin.id));
      store.append = append;
      expect(answer.status).to.equal(500);
      expect(answer.at('error')).to.equal('internal_error');
      expect(answer.at('details.error_type')).to.equal('TypeError');
      expect(answer.at('details.traceback') === undefined).to.equal(production);
      expect(answer.text.includes('a slip')).to.equal(!production);
      const line = api().logged.find((each) => each.includes(answer.textAt('request_id')));
      expect(line).to.contain('a slip');
      expect(api().logged.join('')).to.not.contain(admin.client.token);
    });
  });
}
