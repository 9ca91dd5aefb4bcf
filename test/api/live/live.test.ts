import { expect } from 'chai';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { newId } from '../../../domain/ids.ts';
import { cpuMs } from '../../support/cpu-time.ts';
import { EventStream } from '../../support/event-stream.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { eventually } from '../../support/signals.ts';
import { failure, request, stepEnd, success } from '../../projections/recorded.ts';
import { newTool, OpenJobs } from '../endpoints/workers/open-jobs.ts';
import { plainTask } from '../plain-task.ts';

describe('live streams of runs', () => {
  const api = useRunningApi();
  const opened: EventStream[] = [];
  afterEach(() => {
    for (const stream of opened.splice(0)) stream.close();
  });

  const open = async (
    path: string,
    options: { token?: string | null; after?: string; headers?: Record<string, string> } = {},
  ): Promise<EventStream> => {
    const { token = api().admin.client.token, after } = options;
    const headers = { ...options.headers, ...(after ? { 'last-event-id': after } : {}) };
    const stream = await EventStream.open(`${api().url}${path}`, token, headers);
    opened.push(stream);
    if (stream.status === 200) await stream.named('live.started');
    return stream;
  };
  const ended = (message: { data: Readonly<Record<string, unknown>> }) => message.data['reason'];
  const started: DomainEvent = {
    type: 'RunStarted',
    data: { worker: 'w', attempt: 1, leased_until: '2026-03-01T09:00:00.000Z' },
  };
  const requested = (fields = {}): DomainEvent => ({
    type: 'RunRequested',
    data: request({ created_by: api().admin.id, ...fields }),
  });
  /** A run from its request to its end, one append for each part. */
  const runOf = async (task_id: string, id = newId(0)): Promise<string> => {
    const stream = `run-${id}`;
    await api().append(stream, [requested({ task_id })]);
    await api().append(stream, [started]);
    await api().append(stream, [{ type: 'RunStepCompleted', data: stepEnd('one') }]);
    await api().append(stream, [
      { type: 'RunSucceeded', data: success({ task_id, steps: [stepEnd('two')] }) },
    ]);
    return id;
  };
  const whole = ['run.requested', 'run.started', 'run.step', 'run.ended'];

  it('report each change of a run, with the run as in lists', async () => {
    const { client } = api().admin;
    const stream = await open('/runs/live');
    expect(stream.status).to.equal(200);
    expect(stream.contentType).to.equal('text/event-stream; charset=utf-8');
    const id = await runOf(newId(0));
    const last = await stream.named('run.ended');
    expect(stream.names).to.deep.equal(whole);
    const ids = stream.changes.map((change) => change.id);
    expect(ids).to.deep.equal([...ids].sort());
    expect(new Set(ids).size).to.equal(4);
    expect(stream.changes.map(({ data }) => data['position'])).to.deep.equal(ids);
    const step = stream.changes[2]?.data['step'];
    expect(step).to.include({ step: 'one', status: 'succeeded' }).and.not.have.property('result');
    await client.get(`/runs?after=${last.id}`);
    const list = await client.get('/runs?limit=200');
    const listed = (list.at('items') as { id: string }[]).find((run) => run.id === id);
    expect(last.data['run']).to.deep.equal(listed);
    expect(last.data['step']).to.equal(null);
  });

  it('report lines that a step logs while it runs', async () => {
    const stream = await open('/runs/live');
    const id = newId(0);
    const line = { at: '2026-03-01T08:00:03.000Z', level: 'info', message: 'half', step: 'one' };
    const data = { step: 'one', log: [line] };
    const progressed: DomainEvent = { type: 'RunStepProgressed', data };
    await api().append(`run-${id}`, [requested({ task_id: newId(0) }), started, progressed]);
    const change = await stream.named('run.progress');
    expect(change.data).to.deep.include({ progressed: data, step: null });
    const { client } = api().admin;
    expect((await client.get(`/runs/${id}?after=${change.id}`)).at('log')).to.deep.equal([line]);
  });

  it('report the progress and the lines of a job as its worker sends them', async () => {
    const stream = await open('/runs/live');
    const jobs = await OpenJobs.make(api());
    const tool = newTool();
    const worker = await jobs.worker([tool]);
    const { runId, jobId } = await jobs.open({ tool });
    const job = await worker.job();
    const log = [{ level: 'info', message: 'half', at: '2026-03-01T08:00:00Z' }];
    await worker.say(job, 'heartbeat', { lease: job.lease, progress: 0.5, log });
    const change = await stream.named('run.progress');
    const line = { at: '2026-03-01T08:00:00.000Z', level: 'info', message: 'half', step: 'one' };
    expect(change.data['progressed']).to.deep.equal({
      step: 'one',
      wait_id: jobId,
      progress: 0.5,
      log: [line],
    });
    const run = await api().admin.client.get(`/runs/${runId}?after=${change.id}`);
    expect(run.at('waits.0.progress')).to.equal(0.5);
    expect(run.at('log')).to.deep.equal([line]);
  });

  it('name each kind of change', async () => {
    const stream = await open('/runs/live');
    const run = `run-${newId(0)}`;
    const events: readonly DomainEvent[] = [
      requested(),
      started,
      { type: 'RunInterrupted', data: { worker: 'w', cause: 'drained' } },
      started,
      {
        type: 'RunAttemptFailed',
        data: { attempt: 1, error: 'x\ny', step: null, retry_at: '2026-03-01T09:00:00.000Z' },
      },
      { type: 'RunCancelRequested', data: {} },
      { type: 'RunCanceled', data: { attempt: 1 } },
    ] as readonly DomainEvent[];
    await api().append(run, events);
    await api().append(`run-${newId(0)}`, [
      requested(),
      started,
      { type: 'RunFailed', data: failure() },
    ]);
    await stream.message(({ data }) => (data['run'] as { state?: string })?.state === 'failed');
    expect(stream.names).to.deep.equal([
      'run.requested',
      'run.started',
      'run.interrupted',
      'run.started',
      'run.retrying',
      'run.cancel_requested',
      'run.ended',
      'run.requested',
      'run.started',
      'run.ended',
    ]);
    expect(stream.changes[4]?.data['run']).to.include({ state: 'retrying', error: 'x' });
  });

  it('include a run that started before anybody watched', async () => {
    const id = newId(0);
    await api().append(`run-${id}`, [requested({ task_id: 'task-old' }), started]);
    const stream = await open('/runs/live?state=succeeded');
    await api().append(`run-${id}`, [{ type: 'RunSucceeded', data: success() }]);
    const { data } = await stream.named('run.ended');
    expect(data['run']).to.include({ id, task_id: 'task-old', state: 'succeeded', attempt: 1 });
  });

  it('report only the requested changes', async () => {
    const { admin } = api();
    const task = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    const streams = {
      all: await open('/runs/live'),
      one: await open(`/tasks/${task}/live`),
      filtered: await open(`/runs/live?task_id=${task.toUpperCase()}&state=succeeded`),
      state: await open('/runs/live?state=running'),
    };
    await runOf('another');
    await runOf(task);
    for (const stream of [streams.all, streams.one, streams.filtered]) {
      await stream.message(({ event, data }) => {
        const run = data['run'] as { task_id?: string } | undefined;
        return event === 'run.ended' && run?.task_id === task;
      });
    }
    await eventually(() => streams.state.names.length === 4);
    expect(streams.all.names).to.deep.equal([...whole, ...whole]);
    expect(streams.one.names).to.deep.equal(whole);
    expect(streams.filtered.names).to.deep.equal(['run.ended']);
    expect(streams.state.names).to.deep.equal([
      'run.started',
      'run.step',
      'run.started',
      'run.step',
    ]);
  });

  it('report only the runs of the namespace that an admin names', async () => {
    const stream = await open('/runs/live?namespace=books');
    const [here, elsewhere] = [newId(0), newId(0)];
    await api().append(`run-${elsewhere}`, [requested()]);
    await api().append(`run-${here}`, [requested({ namespace: 'books' })]);
    const first = await stream.named('run.requested');
    expect((first.data['run'] as { readonly id: string }).id).to.equal(here);
  });

  it('resume after Last-Event-ID, from memory and from the log, without gaps or repetitions', async () => {
    const first = await open('/runs/live');
    const before = first.lastId;
    for (let times = 0; times < 3; times += 1) await runOf('task-b');
    await eventually(() => first.names.length === 12);
    const ids = first.changes.map(({ id }) => id);
    for (const from of [0, 1, 5, 11]) {
      const again = await open('/runs/live', { after: ids[from] ?? '' });
      await eventually(() => again.changes.length === 11 - from);
      expect(again.changes).to.deep.equal(first.changes.slice(from + 1));
      again.close();
    }
    first.close();
    // Without clients, nobody follows the log; a returning client catches up from it.
    await eventually(async () => (await watchers()) === 0);
    await eventually(() => api().live.following === false, {
      what: 'the end of the subscription to the log',
    });
    const replayed = await open('/runs/live', { after: before });
    await runOf('task-b');
    await eventually(() => replayed.changes.length === 16);
    expect(replayed.changes.slice(0, 12)).to.deep.equal(first.changes);
    expect(replayed.names).to.deep.equal([...whole, ...whole, ...whole, ...whole]);
  });

  it('omit nothing for a client that connects during many changes', async () => {
    const first = await open('/runs/live');
    const later: EventStream[] = [];
    for (let times = 0; times < 40; times += 1) {
      const id = newId(0);
      await api().append(`run-${id}`, [requested({ task_id: 'task-c' }), started]);
      const after = first.changes.at(Math.floor(first.changes.length / 2))?.id ?? first.lastId;
      if (times % 4 === 0) later.push(await open('/runs/live', times % 8 === 0 ? {} : { after }));
      await api().append(`run-${id}`, [{ type: 'RunSucceeded', data: success() }]);
    }
    await eventually(() => first.names.length === 120);
    const all = first.changes.map(({ id }) => id);
    for (const stream of later) {
      await eventually(() => stream.changes.at(-1)?.id === all.at(-1));
      const ids = stream.changes.map(({ id }) => id);
      expect(ids).to.deep.equal(all.slice(-ids.length));
      const begun = String(stream.messages[0]?.data['position']);
      expect(ids).to.deep.equal(all.filter((id) => id > begun));
    }
  });

  it('keep the position of a client that receives no events', async () => {
    const { admin } = api();
    const task = (await admin.client.post('/tasks', plainTask(admin.id))).textAt('id');
    const stream = await open(`/tasks/${task}/live`);
    const begun = stream.lastId;
    await runOf('another');
    await eventually(() => stream.text.includes(': heartbeat') && stream.lastId > begun);
    expect(stream.changes).to.deep.equal([]);
  });

  it('reject an invalid position', async () => {
    const { client } = api().admin;
    for (const id of ['x', '5', 'f'.repeat(16)]) {
      const answer = await client.get('/runs/live', { headers: { 'last-event-id': id } });
      expect(answer.status, id).to.equal(400);
      expect(answer.at('details.field')).to.equal('Last-Event-ID');
    }
    expect((await client.send('HEAD', '/runs/live')).header('Content-Type')).to.match(
      /event-stream/,
    );
  });

  it('end with the session, and when the agent loses the required scope', async () => {
    const leaving = await api().signIn(['runs:read']);
    const stream = await open('/runs/live', { token: leaving.client.token });
    await leaving.client.post('/agents/auth/revoke', { token: leaving.client.token });
    expect(ended(await stream.named('live.ended'))).to.equal('access_ended');
    await eventually(() => stream.ended);

    const losing = await api().signIn(['runs:read']);
    const other = await open('/runs/live', { token: losing.client.token });
    await api().admin.client.put(`/agents/${losing.id}`, { scopes: ['tasks:read'] });
    expect(ended(await other.named('live.ended'))).to.equal('access_ended');
  });

  it('end when the agent is disabled, and when the API key is revoked', async () => {
    const { client } = api().admin;
    const disabled = await api().signIn(['runs:read']);
    const stream = await open('/runs/live', { token: disabled.client.token });
    await client.post(`/agents/${disabled.id}/disable`);
    expect(ended(await stream.named('live.ended'))).to.equal('access_ended');

    const { id } = await api().signIn(['runs:read']);
    const key = await client.post(`/agents/${id}/keys`, { name: 'live' });
    const other = await open('/runs/live', { token: key.textAt('key') });
    await client.delete(`/agents/${id}/keys/${key.textAt('id')}`);
    expect(ended(await other.named('live.ended'))).to.equal('access_ended');
  });

  it('end for a client that reads too slowly, which can resume', async function () {
    this.timeout(180_000);
    const slow = await open('/runs/live');
    const quick = await open('/runs/live');
    slow.pause();
    // The largest output that a stream shows completely.
    const large = { text: 'x'.repeat(60_000) };
    let runs = 0;
    await eventually(
      async () => {
        for (let each = 0; each < 5; each += 1) {
          const id = newId(0);
          const steps = [stepEnd('large', { result: large })];
          await api().append(`run-${id}`, [
            requested(),
            started,
            { type: 'RunSucceeded', data: success({ steps }) },
          ]);
          runs += 1;
        }
        return (await watchers()) === 1;
      },
      { limitMs: 50_000, everyMs: 1, what: 'the slow client to be disconnected' },
    );
    slow.resume();
    const { data } = await slow.named('live.ended');
    expect(data['reason']).to.equal('slow');
    await eventually(() => quick.names.filter((name) => name === 'run.ended').length === runs);
    const rest = await open('/runs/live', { after: String(data['last_event_id']) });
    await eventually(() => slow.changes.length + rest.changes.length === runs * 3);
    expect([...slow.changes, ...rest.changes].map(({ id }) => id)).to.deep.equal(
      quick.changes.map(({ id }) => id),
    );
  });

  it('reach a thousand concurrent clients', async () => {
    const streams: EventStream[] = [];
    for (let each = 0; each < 1000; each += 50) {
      const more = Array.from({ length: 50 }, () => open('/runs/live'));
      streams.push(...(await Promise.all(more)));
    }
    expect(await watchers()).to.equal(1000);
    const spent = await cpuMs(async () => {
      await runOf('task-many');
      await eventually(() => streams.every(({ names }) => names.length === 4), { limitMs: 60_000 });
    });
    expect(spent).to.be.lessThan(5_000);
    const text = streams[0]?.changes;
    expect(streams.every(({ changes }) => changes[3]?.id === text?.[3]?.id)).to.equal(true);
    const more = await Promise.all(Array.from({ length: 101 }, () => open('/runs/live')));
    expect(more.filter(({ status }) => status === 503)).to.have.length.of.at.least(1);
  }).timeout(180_000);

  const watchers = async (): Promise<number> => {
    await Promise.resolve();
    return api().live.size;
  };

  it('end when the service stops, and no new one starts', async () => {
    const stream = await open('/runs/live');
    await api().live.close();
    expect(ended(await stream.named('live.ended'))).to.equal('shutdown');
    await eventually(() => stream.ended);
    expect((await api().admin.client.get('/runs/live')).status).to.equal(503);
  });
});

describe('a live stream whose token expires', () => {
  const api = useRunningApi();

  it('ends', async () => {
    const { token } = api().admin.client;
    const stream = await EventStream.open(`${api().url}/runs/live`, token);
    await stream.named('live.started');
    api().clock.shift(8 * 86_400_000);
    expect((await stream.named('live.ended')).data['reason']).to.equal('access_ended');
    await eventually(() => stream.ended);
    const again = await EventStream.open(`${api().url}/runs/live`, token);
    expect(again.status).to.equal(401);
    again.close();
  });
});
