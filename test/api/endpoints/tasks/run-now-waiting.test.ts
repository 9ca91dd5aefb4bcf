import { request } from 'node:http';
import { expect } from 'chai';
import { RunningApi } from '../../../support/running-api.ts';
import { eventually } from '../../../support/signals.ts';
import { plainTask } from '../../plain-task.ts';

describe('a run that its caller waits for', () => {
  let api: RunningApi;
  beforeEach(async () => {
    api = await RunningApi.start();
  });
  afterEach(() => api.close());

  const runNow = async () => {
    const { id, client } = api.admin;
    const task = await client.post('/tasks', plainTask(id));
    return client.post(`/tasks/${task.textAt('id')}/run_now?wait=60`);
  };
  const requested = (): boolean => api.store.appended.some((stream) => stream.startsWith('run-'));

  it('is returned in its present state when the service stops', async () => {
    const asked = runNow();
    await eventually(requested);
    api.stopping.abort();
    const answer = await asked;
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.at('details.run.state')).to.equal('queued');
  });

  /** Counts the subscriptions to the log that start, and those that end. */
  const following = (): { readonly count: number; readonly over: number } => {
    const seen = { count: 0, over: 0 };
    const subscribe = api.store.subscribe.bind(api.store);
    api.store.subscribe = async function* (options) {
      seen.count += 1;
      try {
        yield* subscribe(options);
      } finally {
        seen.over += 1;
      }
    };
    return seen;
  };

  it('is no longer followed once its caller has disconnected', async () => {
    const { id, client } = api.admin;
    const task = (await client.post('/tasks', plainTask(id))).textAt('id');
    const seen = following();
    const headers = { authorization: `Bearer ${String(client.token)}` };
    const options = { method: 'POST', headers, agent: false };
    const asked = request(`${api.url}/tasks/${task}/run_now?wait=60`, options);
    asked.on('error', () => {}).end();
    await eventually(() => seen.count === 1);
    asked.destroy();
    await eventually(() => seen.over === 1);
  });

  it('is returned as requested even if the log cannot be followed', async () => {
    const append = api.store.append.bind(api.store);
    api.store.append = async (...given) => {
      const appended = await append(...given);
      api.store.away ||= given[0].startsWith('run-');
      return appended;
    };
    const answer = await runNow();
    api.store.away = false;
    expect(answer.status, answer.text).to.equal(200);
    expect(requested()).to.equal(true);
  });
});
