import { expect } from 'chai';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { FailedRuns } from './runs/failed-runs.ts';
import { plainTask } from '../plain-task.ts';

/** Every field that a client may set on a task. */
const whole = {
  title: 'Whole',
  description: 'Has every field',
  schedule_kind: 'rrule',
  schedule_expr: 'FREQ=DAILY;BYHOUR=9;BYMINUTE=30;BYSECOND=0',
  timezone: 'Europe/Berlin',
  payload: { params: { a: 1 }, pipeline: [{ id: 'say', uses: 'echo', with: { b: [true] } }] },
  priority: 2,
  max_retries: 7,
  backoff_strategy: 'linear',
  dedupe_key: 'once a day',
  dedupe_window_seconds: 86_400,
  concurrency_key: 'printer',
  concurrency_limit: 3,
  overlap_policy: 'queue',
  misfire_policy: 'all',
  misfire_grace_seconds: 120,
  retry_delay_seconds: 2,
  retry_max_delay_seconds: 60,
  timeout_seconds: 600,
  starts_at: '2090-01-01T00:00:00.000Z',
  ends_at: '2090-12-31T00:00:00.000Z',
  max_runs: 100,
  jitter_seconds: 30,
  pause_after_failures: 4,
  tags: ['a', 'b'],
};

/** The same with a different value in each field. */
const other: Readonly<Record<keyof typeof whole, unknown>> = {
  title: 'Other',
  description: 'Has others',
  schedule_kind: 'cron',
  schedule_expr: '30 9 * * *',
  timezone: 'America/New_York',
  payload: { pipeline: [] },
  priority: 8,
  max_retries: 0,
  backoff_strategy: 'fixed',
  dedupe_key: null,
  dedupe_window_seconds: null,
  concurrency_key: null,
  concurrency_limit: 1,
  overlap_policy: 'skip',
  misfire_policy: 'skip',
  misfire_grace_seconds: 0,
  retry_delay_seconds: 5,
  retry_max_delay_seconds: 500,
  timeout_seconds: null,
  starts_at: '2091-01-01T00:00:00.000Z',
  ends_at: null,
  max_runs: null,
  jitter_seconds: 0,
  pause_after_failures: null,
  tags: [],
};

/** The minimum and maximum of fields. */
const bounds: readonly (readonly [field: string, least: unknown, most: unknown])[] = [
  ['title', 'x', 'x'.repeat(200)],
  ['description', 'x', 'x'.repeat(2000)],
  ['dedupe_key', 'x', 'x'.repeat(200)],
  ['concurrency_key', 'x', 'x'.repeat(200)],
  ['priority', 1, 9],
  ['max_retries', 0, 50],
  ['dedupe_window_seconds', 0, 31_536_000],
];

describe('the records of the HTTP interface, field by field', () => {
  const api = useRunningApi();
  const shown = async (path: string): Promise<ReceivedResponse> => {
    const answer = await api().admin.client.get(path);
    expect(answer.status, answer.text).to.equal(200);
    return answer;
  };

  it('include a task with every field of its creation', async () => {
    const { admin } = api();
    const body = { ...whole, created_by: admin.id };
    const created = await admin.client.post('/tasks', body);
    expect(created.status, created.text).to.equal(201);
    expect(created.json).to.deep.include(body);
    expect(created.json).to.deep.include({
      schedule_text: 'every day at 09:30, Europe/Berlin',
      status: 'active',
      next_run_at: '2090-01-01T08:30:00.000Z',
      last_run_at: null,
      exhausted: false,
      revision: 0,
      warnings: [],
    });
    expect(created.at('created_at')).to.equal(created.at('updated_at'));
    const id = created.textAt('id');
    expect((await shown(`/tasks/${id}`)).json).to.deep.equal(created.json);
    const past = await shown(`/tasks/${id}?as_of=${created.header('X-Event-Position')}`);
    expect(past.at('schedule_text')).to.equal(created.at('schedule_text'));
    const listed = await shown('/tasks?search=Whole&limit=1&offset=0');
    expect(listed.json).to.deep.include({ total: 1, limit: 1, offset: 0, has_more: false });
    expect(listed.at('items')).to.deep.equal([created.json]);
    expect(listed.at('next_cursor')).to.equal(null);
  });

  it('include a task with every changed field, and with the others unchanged', async () => {
    const { admin } = api();
    const created = await admin.client.post('/tasks', { ...whole, created_by: admin.id });
    const path = created.header('Location');
    // One at a time, except for fields that only make sense together.
    const { schedule_kind, schedule_expr, timezone, starts_at, ends_at, ...rest } = other;
    const rule = { schedule_kind, schedule_expr, timezone, starts_at, ends_at };
    const changes = [rule, ...Object.entries(rest).map(([field, value]) => ({ [field]: value }))];
    let expected = { ...whole, created_by: admin.id } as object;
    for (const change of changes) {
      expected = { ...expected, ...change };
      const changed = await admin.client.put(path, change);
      expect(changed.status, changed.text).to.equal(200);
      expect(changed.json).to.deep.include(expected);
    }
    const owner = await api().signIn(['tasks:write']);
    const given = await admin.client.put(path, { created_by: owner.id });
    expect((await shown(path)).json).to.deep.equal(given.json);
    expect(given.at('created_by')).to.equal(owner.id);
    expect(given.at('revision')).to.equal(changes.length + 1);
  });

  it('accept the limits of fields', async () => {
    const { admin } = api();
    for (const [field, ...values] of bounds) {
      for (const value of values) {
        const body = { ...plainTask(admin.id), [field]: value };
        const created = await admin.client.post('/tasks', body);
        expect(created.status, `${field} ${created.text}`).to.equal(201);
        expect(created.at(field)).to.equal(value);
      }
    }
    const task = await admin.client.post('/tasks', plainTask(admin.id));
    for (const delay_seconds of [1, 604_800]) {
      const path = `${task.header('Location')}/snooze`;
      const snoozed = await admin.client.post(path, { delay_seconds, reason: 'later' });
      expect(snoozed.at('details.delay_seconds'), snoozed.text).to.equal(delay_seconds);
    }
  });

  it('include statistics with every field, even if nothing ran', async () => {
    const { admin } = api();
    const runs = new FailedRuns(api(), admin);
    const task = await runs.makeTask();
    const nothing = {
      total_runs: 0,
      successful_runs: 0,
      failed_runs: 0,
      skipped_runs: 0,
      success_rate: null,
      failure_rate: null,
      avg_execution_time_seconds: null,
      p50_execution_time_seconds: null,
      p95_execution_time_seconds: null,
    };
    const unused = { last_run: null, last_success: null, last_failure: null };
    const empty = await shown(`/task/${task}/stats?days=1`);
    const date = empty.textAt('by_day.0.date');
    expect(date).to.match(/^\d{4}-\d{2}-\d{2}$/);
    expect(empty.json).to.deep.equal({
      task_id: task,
      period_days: 1,
      ...nothing,
      ...unused,
      timezone: 'UTC',
      by_day: [{ date, start: `${date}T00:00:00.000Z`, ...nothing }],
    });
    expect((await shown('/stats/summary?days=1')).json).to.deep.equal({
      period_days: 1,
      ...nothing,
      total_tasks_executed: 0,
      runs_per_day: 0,
      timezone: 'UTC',
      by_day: [{ date, start: `${date}T00:00:00.000Z`, ...nothing }],
    });
    await runs.succeed(task, await runs.runNow(task));
    const failed = await runs.failed(task);
    const after = await api().store.head();
    const stats = await shown(`/task/${task}/stats?days=2&after=${after}`);
    const { finished_at } = (await shown(`/runs/${failed}`)).json;
    expect(stats.json).to.include({
      total_runs: 2,
      successful_runs: 1,
      failed_runs: 1,
      success_rate: 0.5,
      failure_rate: 0.5,
      last_run: finished_at,
      last_failure: finished_at,
    });
    expect(stats.textAt('last_success') <= String(finished_at)).to.equal(true);
    const summary = await shown(`/stats/summary?days=2&after=${after}`);
    expect(summary.json).to.include({ total_tasks_executed: 1, total_runs: 2, runs_per_day: 1 });
    for (const answer of [stats, summary]) {
      for (const name of ['avg', 'p50', 'p95']) {
        expect(answer.at(`${name}_execution_time_seconds`)).to.be.at.least(0);
      }
    }
  });

  it('include success, a message and details for commands', async () => {
    const { admin } = api();
    const agent = await api().signIn([]);
    const task = (await admin.client.post('/tasks', plainTask(admin.id))).header('Location');
    const run = await admin.client.post(`${task}/run_now`);
    const event = { topic: 'a', payload: {}, source_agent_id: admin.id };
    const answers = [
      run,
      await admin.client.post(`/runs/${run.textAt('details.run_id')}/cancel`),
      await admin.client.post(`${task}/snooze`, { delay_seconds: 5 }),
      await admin.client.post(`${task}/pause`),
      await admin.client.post(`${task}/resume`),
      await admin.client.post(`${task}/cancel`),
      await admin.client.post('/events', event),
      await admin.client.delete('/stream/cleanup'),
      await admin.client.delete(`/agents/${agent.id}`),
      await admin.client.post('/runs/redrive'),
    ];
    for (const answer of answers) {
      const { json, text } = answer;
      expect(answer.header('X-Event-Position'), text).to.match(/^[0-9]+$/);
      expect(json, text).to.have.all.keys('success', 'message', 'details');
      expect(json['success']).to.equal(true);
      expect(json['message']).to.be.a('string').that.is.not.empty;
    }
  });

  it('include the newest publications and their number up to a position', async () => {
    const { admin } = api();
    const event = { topic: 'counted', payload: { n: 1 }, source_agent_id: admin.id };
    const published = await admin.client.post('/events', event);
    const after = published.header('X-Event-Position');
    const recent = await shown(`/stream/recent?topic=counted&count=1&after=${after}`);
    const { event_id, stream_id, published_at } = published.at('details') as Record<string, string>;
    expect(recent.json).to.deep.equal({
      truncated: false,
      total_events: 1,
      events: [{ ...event, event_id, stream_id, published_at, triggered_tasks: [] }],
    });
  });
});
