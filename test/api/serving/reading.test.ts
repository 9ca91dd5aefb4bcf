import { expect } from 'chai';
import type { DataOf, RunEvent } from '../../../domain/events/catalogue.ts';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import type { ReceivedResponse } from '../../support/api-client.ts';
import { found } from '../../support/signals.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { plainTask } from '../plain-task.ts';

const idsOf = (answer: ReceivedResponse): readonly string[] =>
  (answer.at('items') as { id: string }[]).map(({ id }) => id);

describe('reading over HTTP', () => {
  const api = useRunningApi();
  let caller: SignedIn;
  beforeEach(async () => {
    caller = await api().signIn(['tasks:read', 'tasks:write', 'runs:read']);
  });
  const makeTask = async (): Promise<string> =>
    (await caller.client.post('/tasks', plainTask(caller.id))).textAt('id');
  const runNow = async (task: string): Promise<string> =>
    (await caller.client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
  const start: RunEvent = {
    type: 'RunStarted',
    data: { worker: 'w', attempt: 1, leased_until: '2090-01-01T00:00:00.000Z' },
  };
  const ended = (task_id: string) => ({
    task_id,
    started_at: new Date(api().clock.now() - 1500).toISOString(),
    attempt: 1,
    steps: [],
    output: { steps: {}, summary: { total_steps: 0, executed_steps: 0, skipped_steps: 0 } },
  });
  const succeed = (task: string, run: string): Promise<void> =>
    api().append(streams.run(run), [
      start,
      { type: 'RunSucceeded', data: ended(task) as unknown as DataOf<'RunSucceeded'> },
    ]);
  const fail = (task: string, run: string, error: string): Promise<void> => {
    const data = { ...ended(task), error, step: 'a' };
    return api().append(streams.run(run), [
      start,
      { type: 'RunFailed', data: data as unknown as DataOf<'RunFailed'> },
    ]);
  };
  /** Reads once the view has all events of the log. */
  const readAll = async (path: string): Promise<ReceivedResponse> => {
    const after = await api().store.head();
    const answer = await caller.client.get(
      `${path}${path.includes('?') ? '&' : '?'}after=${after}`,
    );
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.header('X-Read-Position') >= after).to.equal(true);
    return answer;
  };

  for (const [what, list, make] of [
    ['tasks', () => `/tasks?created_by=${caller.id}`, async (_task: string) => makeTask()],
    ['runs', (task: string) => `/runs?task_id=${task}`, (task: string) => runNow(task)],
  ] as const) {
    it(`pages ${what} by cursor as by offset, newest first`, async () => {
      const task = await makeTask();
      const made: string[] = what === 'tasks' ? [task] : [];
      while (made.length < 7) made.unshift(await make(task));
      const path = list(task);
      const byOffset: string[] = [];
      const byCursor: string[] = [];
      for (let offset = 0; offset < 9; offset += 3) {
        const page = await caller.client.get(`${path}&limit=3&offset=${offset}`);
        byOffset.push(...idsOf(page));
        expect(page.json).to.include({ total: 7, limit: 3, offset, has_more: offset < 6 });
      }
      let cursor: string | null = '';
      for (let pages = 0; cursor !== null; pages += 1) {
        expect(pages).to.be.lessThan(3);
        const page = await caller.client.get(
          `${path}&limit=3${cursor === '' ? '' : `&cursor=${cursor}`}`,
        );
        byCursor.push(...idsOf(page));
        expect(page.at('total')).to.equal(7);
        cursor = page.at('next_cursor') as string | null;
      }
      expect(byOffset).to.deep.equal(made);
      expect(byCursor).to.deep.equal(made);
      const beyond = await caller.client.get(`${path}&offset=${Number.MAX_SAFE_INTEGER}`);
      expect(beyond.json).to.deep.include({
        items: [],
        total: 7,
        has_more: false,
        next_cursor: null,
      });
    });
  }

  it('rejects the cursor of another order', async () => {
    const task = await makeTask();
    for (let runs = 0; runs < 3; runs += 1) await succeed(task, await runNow(task));
    const queued = await readAll('/runs?limit=1');
    const cursor = queued.textAt('next_cursor');
    const wrong = await caller.client.get(
      `/runs?limit=1&start_time=2020-01-01T00:00:00Z&cursor=${cursor}`,
    );
    expect(wrong.status).to.equal(400);
    expect(wrong.at('details.field')).to.equal('cursor');
  });

  it('lists runs by state and time', async () => {
    const task = await makeTask();
    const [good, bad, queued] = [await runNow(task), await runNow(task), await runNow(task)];
    await succeed(task, good);
    await fail(task, bad, `${'e'.repeat(200)}\nsecond line`);
    await readAll('/runs');
    const path = `/runs?task_id=${task.toUpperCase()}`;
    const listed = async (query: string) => idsOf(await caller.client.get(`${path}${query}`));
    expect(await listed('')).to.deep.equal([queued, bad, good]);
    expect(await listed('&success=true')).to.deep.equal([good]);
    expect(await listed('&success=false')).to.deep.equal([bad]);
    expect(await listed('&state=queued')).to.deep.equal([queued]);
    expect(await listed('&state=queued&success=true')).to.deep.equal([]);
    expect(await listed('&trigger=schedule')).to.deep.equal([]);
    expect(await listed('&trigger=manual&limit=1')).to.deep.equal([queued]);
    const [hourAgo, hourAhead] = [-1, 1].map((hours) =>
      encodeURIComponent(new Date(api().clock.now() + hours * 3_600_000).toISOString()),
    );
    expect(await listed(`&start_time=${hourAgo}&end_time=${hourAhead}`)).to.have.members([
      good,
      bad,
    ]);
    expect(await listed(`&start_time=${hourAhead}`)).to.deep.equal([]);
    expect(await listed(`&until=${hourAhead}`)).to.deep.equal([queued, bad, good]);
    expect(await listed(`&until=${hourAgo}`)).to.deep.equal([]);
    const short = await caller.client.get(`${path}&success=false`);
    expect(short.at('items.0.error')).to.equal('e'.repeat(120));
    expect(short.at('items.0')).to.not.have.any.keys(
      'attempts',
      'steps',
      'log',
      'listed',
      'revision',
    );
    const whole = await caller.client.get(`${path}&success=false&include_errors=true`);
    expect(whole.textAt('items.0.error')).to.contain('second line');
  });

  it('shows a complete run', async () => {
    const task = await makeTask();
    const run = await runNow(task);
    await fail(task, run, 'broken\nin two');
    await readAll('/runs');
    const shown = await caller.client.get(`/runs/${run.toUpperCase()}`);
    expect(shown.json).to.include({
      id: run,
      task_id: task,
      state: 'failed',
      success: false,
      error: 'broken\nin two',
      attempt: 1,
    });
    expect(shown.at('attempts.0')).to.include({ outcome: 'failed', step: 'a' });
    const ofLists = [
      ...['id', 'task_id', 'created_by', 'lease_owner', 'leased_until', 'started_at'],
      'finished_at',
      ...['success', 'error', 'attempt', 'output', 'created_at', 'state', 'trigger'],
      ...['scheduled_for', 'run_at', 'queued_at', 'priority', 'task_revision'],
      ...['retry_of', 'retried_by', 'skip_reason', 'cancel_requested', 'depth', 'params'],
      ...['event', 'parent_run_id', 'waits'],
    ];
    expect(shown.json).to.have.all.keys(...ofLists, 'attempts', 'steps', 'plan', 'log');
    const listed = await caller.client.get(`/runs?task_id=${task}`);
    expect(listed.at('items.0')).to.have.all.keys(...ofLists);
    expect(listed.at('items.0.error')).to.equal('broken');
  });

  it('returns the latest run of a task, or null if it never ran', async () => {
    const task = await makeTask();
    for (const path of [`/task/${task}/latest`, `/runs/task/${task}/latest`]) {
      const none = await caller.client.get(path);
      expect([none.status, none.text]).to.deep.equal([200, 'null']);
    }
    await runNow(task);
    const run = await runNow(task);
    for (const path of [`/task/${task}/latest`, `/runs/task/${task.toUpperCase()}/latest`]) {
      expect((await caller.client.get(path)).at('id')).to.equal(run);
    }
  });

  it('shows with a task when it last ran', async () => {
    const task = await makeTask();
    const run = await runNow(task);
    expect((await caller.client.get(`/tasks/${task}`)).at('last_run_at')).to.equal(null);
    await succeed(task, run);
    await readAll('/runs');
    const { started_at } = (await caller.client.get(`/runs/${run}`)).json;
    expect(started_at).to.be.a('string');
    expect((await caller.client.get(`/tasks/${task}`)).at('last_run_at')).to.equal(started_at);
    const listed = await caller.client.get(`/tasks?created_by=${caller.id}`);
    expect(listed.at('items.0.last_run_at')).to.equal(started_at);
    const changed = await caller.client.put(`/tasks/${task}`, { title: 'x' });
    expect(changed.at('last_run_at')).to.equal(started_at);
  });

  it('counts runs, of a task and of all', async () => {
    const task = await makeTask();
    const empty = await caller.client.get(`/task/${task}/stats`);
    expect(empty.json).to.include({
      task_id: task,
      period_days: 30,
      total_runs: 0,
      success_rate: null,
      last_run: null,
    });
    expect(empty.at('by_day')).to.have.length(30);
    await succeed(task, await runNow(task));
    await fail(task, await runNow(task), 'x');
    const paths = [`/task/${task}/stats`, `/runs/task/${task}/stats`];
    for (const path of paths) {
      const stats = await readAll(`${path}?days=2`);
      expect(stats.json).to.include({
        period_days: 2,
        total_runs: 2,
        successful_runs: 1,
        failed_runs: 1,
        success_rate: 0.5,
      });
    }
    for (const path of ['/stats/summary', '/runs/stats/summary']) {
      const summary = await readAll(path);
      expect(summary.json).to.include.all.keys(
        'total_tasks_executed',
        'runs_per_day',
        'p95_execution_time_seconds',
      );
      expect(summary.at('period_days')).to.equal(7);
      expect(summary.at('total_runs')).to.be.at.least(2);
    }
  });

  it('cancels a queued run immediately after its request', async () => {
    const task = await makeTask();
    const run = await runNow(task);
    const canceled = await caller.client.post(`/runs/${run}/cancel`);
    expect(canceled.status, canceled.text).to.equal(200);
    expect(canceled.at('details')).to.deep.equal({ run_id: run, old_state: 'queued' });
    expect((await caller.client.get(`/runs/${run}`)).at('state')).to.equal('canceled');
    const again = await caller.client.post(`/runs/${run}/cancel`);
    expect(again.status).to.equal(200);
    expect(again.header('X-Event-Position')).to.equal(canceled.header('X-Event-Position'));
  });

  it("does not cancel another agent's run or a finished one", async () => {
    const task = await makeTask();
    const run = await runNow(task);
    const other = await api().signIn(['tasks:write']);
    expect((await other.client.post(`/runs/${run}/cancel`)).status).to.equal(403);
    await succeed(task, run);
    expect((await other.client.post(`/runs/${run}/cancel`)).status).to.equal(403);
    const late = await caller.client.post(`/runs/${run}/cancel`);
    expect(late.status).to.equal(409);
    expect(late.at('error')).to.equal('conflict');
  });

  it('waits for the end of a requested run', async () => {
    const task = await makeTask();
    const held = api().store.holdNext('run-');
    const waiting = caller.client.post(`/tasks/${task}/run_now?wait=20`);
    await held.arrived;
    held.release();
    const id = await found(async () => idsOf(await caller.client.get(`/runs?task_id=${task}`))[0], {
      what: 'the run to be requested',
    });
    await succeed(task, id);
    const answer = await waiting;
    expect(answer.at('details.run_id')).to.equal(id);
    expect(answer.at('details.run')).to.include({ id, state: 'succeeded', success: true });
  });

  it('returns the run in its present state after the timeout', async () => {
    const task = await makeTask();
    const answer = await caller.client.post(`/tasks/${task}/run_now?wait=0.05`);
    expect(answer.status, answer.text).to.equal(200);
    expect(answer.at('details.run')).to.include({ state: 'queued', success: null });
  });

  it('names the original run of a duplicate request', async () => {
    const body = { ...plainTask(caller.id), dedupe_key: newId(0), dedupe_window_seconds: 60 };
    const task = (await caller.client.post('/tasks', body)).textAt('id');
    const first = await caller.client.post(`/tasks/${task}/run_now`);
    expect(first.at('details')).to.have.all.keys('task_id', 'run_id');
    const second = await caller.client.post(`/tasks/${task}/run_now`);
    expect(second.status).to.equal(200);
    expect(second.at('details')).to.deep.equal({
      ...(first.at('details') as object),
      deduplicated: true,
    });
  });

  it('reads up to a position that a command returned, through any agent', async () => {
    const other = await api().signIn(['tasks:read']);
    for (let times = 0; times < 20; times += 1) {
      const created = await caller.client.post('/tasks', plainTask(caller.id));
      const after = created.header('X-Event-Position');
      const shown = await other.client.get(`${created.header('Location')}?after=${after}`);
      expect(shown.status, shown.text).to.equal(200);
    }
  });

  it('rejects a position beyond the end, and times out for one that is not reached', async () => {
    const head = await api().store.head();
    const beyond = head.replace(/^./, '9');
    const refused = await caller.client.get(`/tasks?after=${beyond}`);
    expect(refused.status).to.equal(400);
    expect(refused.at('details.field')).to.equal('after');
  });

  it('responds to HEAD as to GET, without the body', async () => {
    const task = await makeTask();
    const whole = await caller.client.get(`/tasks/${task}`);
    const head = await caller.client.send('HEAD', `/tasks/${task}`);
    expect(head.status).to.equal(200);
    expect(head.text).to.equal('');
    expect(head.header('ETag')).to.equal(whole.header('ETag'));
    expect(head.header('Content-Length')).to.equal(whole.header('Content-Length'));
    expect((await caller.client.send('HEAD', `/tasks/${newId(0)}`)).status).to.equal(404);
  });

  it('forbids caching in every response', async () => {
    const task = await makeTask();
    for (const path of [`/tasks/${task}`, '/nowhere', '/health/live']) {
      const answer = await caller.client.get(path, { headers: { 'if-none-match': '"0"' } });
      expect(answer.header('Cache-Control')).to.equal('no-store');
      expect(answer.header('X-Content-Type-Options')).to.equal('nosniff');
      expect(answer.header('Content-Type')).to.match(/^application\/json/);
      expect(answer.header('X-Request-Id')).to.have.length(36);
      expect(answer.headers).to.not.have.any.keys('x-powered-by');
      expect(answer.status).to.not.equal(304);
    }
  });
});

describe('events over HTTP', () => {
  const api = useRunningApi();

  it('trigger the active event tasks that match, including recently created ones', async () => {
    const caller = await api().signIn(['tasks:read', 'tasks:write', 'events:publish']);
    const task = async (schedule_expr: string | null) => {
      const body = { ...plainTask(caller.id), schedule_kind: 'event', schedule_expr };
      return (await caller.client.post('/tasks', body)).textAt('id');
    };
    const publish = (topic: string) =>
      caller.client.post('/events', { topic, payload: { n: 1 }, source_agent_id: caller.id });
    const star = await task('orders.*');
    const hash = await task('orders.#');
    const all = await task(null);
    await task('invoices.*');
    await caller.client.post('/tasks', plainTask(caller.id));
    const first = await publish('orders.new');
    expect(first.status, first.text).to.equal(202);
    expect(first.at('success')).to.equal(true);
    expect(first.at('details')).to.have.all.keys(
      'event_id',
      'stream_id',
      'topic',
      'triggered_tasks',
      'published_at',
    );
    expect(first.at('details.triggered_tasks')).to.deep.equal([star, hash, all].sort());
    const at = Date.parse(first.textAt('details.published_at'));
    expect(first.textAt('details.stream_id')).to.equal(`${at}-0`);
    await caller.client.post(`/tasks/${star}/pause`);
    expect((await publish('orders.new')).at('details.triggered_tasks')).to.deep.equal(
      [hash, all].sort(),
    );
    await caller.client.put(`/tasks/${hash}`, { schedule_expr: 'orders.*.late' });
    const third = await publish('orders.new');
    expect(third.at('details.triggered_tasks')).to.deep.equal([all]);
    expect(third.textAt('details.stream_id')).to.match(/-2$/);
    const topics = await caller.client.get('/topics');
    expect(topics.at('topics')).to.deep.include({
      topic: 'orders.*.late',
      active_tasks: 1,
      task_ids: [hash],
    });
    expect(topics.at('topics.0')).to.deep.equal({ topic: '#', active_tasks: 1, task_ids: [all] });
    expect(topics.at('total_topics')).to.equal(3);
    expect((await caller.client.get('/events/topics')).json).to.deep.equal(topics.json);
  });

  it('can be published by an admin for any agent', async () => {
    const { id } = await api().signIn([]);
    const body = { topic: 'a', payload: {}, source_agent_id: id.toUpperCase() };
    const answer = await api().admin.client.post('/events', body);
    expect(answer.status, answer.text).to.equal(202);
    const [event] = await api().store.readStream('topic-a');
    expect(event?.data).to.include({ source_agent_id: id });
  });
});
