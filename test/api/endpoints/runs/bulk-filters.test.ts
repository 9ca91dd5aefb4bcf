import { expect } from 'chai';
import { newId } from '../../../../domain/ids.ts';
import { useRunningApi } from '../../../support/running-api.ts';
import { plainTask } from '../../plain-task.ts';
import { FailedRuns } from './failed-runs.ts';

const MINUTE = 60_000;

describe('the filters of bulk commands and of statistics', () => {
  const api = useRunningApi();
  let task: string;
  let queued: string;
  let failed: string;
  let group: string;

  before(async () => {
    const runs = new FailedRuns(api(), api().admin);
    task = await runs.makeTask({ payload: { pipeline: [{ uses: 'echo', with: {} }] } });
    queued = await runs.runNow(task);
    failed = await runs.failed(task, 'order 17 is unknown');
    await runs.failed(task, 'out of paper');
    const { client } = api().admin;
    const errors = await client.get(`/stats/errors?hours=24&after=${await api().store.head()}`);
    const items = errors.at('items') as readonly { id: string; example: string }[];
    group = items.find(({ example }) => example.startsWith('order'))?.id ?? '';
    await client.get(`/runs?limit=1&after=${await api().store.head()}`);
  });

  async function countOf(path: string, filters: object): Promise<unknown> {
    const answer = await api().admin.client.post(path, { dry_run: true, ...filters });
    expect(answer.status, answer.text).to.equal(200);
    return answer.at('details.count');
  }

  it('choose unfinished runs to cancel by owner, end, id and error', async () => {
    const cancel = (filters: object): Promise<unknown> => countOf('/runs/cancel', filters);
    const created_by = api().admin.id;
    expect(await cancel({ created_by })).to.equal(1);
    const earlier = new Date(api().clock.now() - MINUTE).toISOString();
    expect(await cancel({ created_by, end_time: earlier })).to.equal(0);
    expect(await cancel({ id: queued.slice(0, 13) })).to.equal(1);
    expect(await cancel({ id: failed.slice(0, 13) })).to.equal(0);
    // The queued run has no error, so these filters match nothing.
    expect(await cancel({ error: 'order' })).to.equal(0);
    expect(await cancel({ error_group: group })).to.equal(0);
  });

  it('choose unfinished runs to cancel by trigger, start, input, event and namespace', async () => {
    const cancel = (filters: object): Promise<unknown> => countOf('/runs/cancel', filters);
    expect(await cancel({ task_id: task, trigger: 'manual' })).to.equal(1);
    expect(await cancel({ task_id: task, trigger: 'event' })).to.equal(0);
    const later = new Date(api().clock.now() + MINUTE).toISOString();
    expect(await cancel({ task_id: task, start_time: later })).to.equal(0);
    expect(await cancel({ task_id: task, input: 'no run has this' })).to.equal(0);
    expect(await cancel({ task_id: task, event_id: newId(api().clock.now()) })).to.equal(0);
    expect(await countOf('/runs/cancel?namespace=default', { task_id: task })).to.equal(1);
    expect(await countOf('/runs/cancel?namespace=other', { task_id: task })).to.equal(0);
  });

  it('choose failed runs to retry by id, input, event and namespace', async () => {
    const retry = (filters: object): Promise<unknown> => countOf('/runs/redrive', filters);
    expect(await retry({ task_id: task })).to.equal(2);
    expect(await retry({ id: failed.slice(0, 13) })).to.equal(1);
    expect(await retry({ input: 'no run has this' })).to.equal(0);
    expect(await retry({ event_id: newId(api().clock.now()) })).to.equal(0);
    expect(await countOf('/runs/redrive?namespace=default', { task_id: task })).to.equal(2);
    expect(await countOf('/runs/redrive?namespace=other', { task_id: task })).to.equal(0);
  });

  it('list the failed runs of a group of errors', async () => {
    const listed = await api().admin.client.get(`/runs?error_group=${group}`);
    const items = listed.at('items') as readonly { id: string }[];
    expect(items.map(({ id }) => id)).to.deep.equal([failed]);
  });

  it('select the hours or days, the zone and the namespace of statistics', async () => {
    const { client } = api().admin;
    const hours = await client.get(`/task/${task}/stats?hours=2`);
    expect(hours.at('failed_runs')).to.equal(2);
    const ranking = await client.get(
      '/stats/tasks?days=1&timezone=Asia/Kolkata&namespace=default&sort=failed',
    );
    expect(ranking.at('timezone')).to.equal('Asia/Kolkata');
    const summary = await client.get('/stats/summary?timezone=Asia/Kolkata&namespace=default');
    expect(summary.at('timezone')).to.equal('Asia/Kolkata');
    expect(ranking.at('items.0')).to.include({ task_id: task, failed_runs: 2 });
    const elsewhere = `/tasks/outcomes?ids=${task}&namespace=`;
    expect((await client.get(`${elsewhere}default`)).at('items')).to.have.lengthOf(1);
    expect((await client.get(`${elsewhere}other`)).at('items')).to.deep.equal([]);
  });

  it('accept every field of a definition that is checked', async () => {
    const { client, id } = api().admin;
    const definition = {
      ...plainTask(id),
      timezone: 'Europe/Berlin',
      priority: 3,
      max_retries: 2,
      tags: ['checked'],
      backoff_strategy: 'fixed',
      retry_delay_seconds: 5,
      retry_max_delay_seconds: 50,
      dedupe_key: 'one',
      dedupe_window_seconds: 60,
      timeout_seconds: 100,
      concurrency_key: 'printer',
      concurrency_limit: 2,
      overlap_policy: 'queue',
      misfire_policy: 'all',
      misfire_grace_seconds: 30,
      jitter_seconds: 1,
      starts_at: '2030-01-01T00:00:00Z',
      ends_at: '2031-01-01T00:00:00Z',
      max_runs: 9,
      pause_after_failures: 3,
      params_schema: { type: 'object' },
    };
    const checked = await client.post('/tasks/check', definition);
    expect(checked.status, checked.text).to.equal(200);
    expect(checked.at('warnings')).to.deep.equal([]);
    const tasks = await client.get('/tasks?tag=checked');
    expect(tasks.at('total')).to.equal(0);
  });
});
