import { expect } from 'chai';
import type { DomainEvent } from '../../../domain/events/catalogue.ts';
import { newId } from '../../../domain/ids.ts';
import { waitingRun } from '../../api/endpoints/runs/waiting-run.ts';
import { plainTask } from '../../api/plain-task.ts';
import { failure, request, stepEnd, success } from '../../projections/recorded.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { Signal } from '../../support/signals.ts';
import { svc, type Called, type Calling } from './command-line.ts';

const started: DomainEvent = {
  type: 'RunStarted',
  data: { worker: 'w', attempt: 1, leased_until: '2026-03-01T09:00:00.000Z' },
};

describe('svc runs', () => {
  const api = useRunningApi();

  const call = (words: readonly string[], calling: Calling = {}): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(['runs', ...words], { env, ...calling });
  };
  const newTask = async (): Promise<string> => {
    const { client, id } = api().admin;
    return (await client.post('/tasks', plainTask(id))).textAt('id');
  };
  /** A run that was requested and started. */
  const startRun = async (task_id: string): Promise<string> => {
    const id = newId(Date.parse('2026-03-01T08:00:00Z'));
    const created_by = api().admin.id;
    const requested: DomainEvent = { type: 'RunRequested', data: request({ task_id, created_by }) };
    await api().append(`run-${id}`, [requested, started]);
    return id;
  };
  const succeed = (id: string, task_id: string): Promise<void> =>
    api().append(`run-${id}`, [
      { type: 'RunSucceeded', data: success({ task_id, steps: [stepEnd('say')] }) },
    ]);
  const fail = (id: string, task_id: string): Promise<void> =>
    api().append(`run-${id}`, [{ type: 'RunFailed', data: failure({ task_id }) }]);

  it('lists and shows runs', async () => {
    const task = await newTask();
    const id = await startRun(task);
    await succeed(id, task);
    const found = await call(['show', id]);
    expect(found.out).to.match(new RegExp(`^id +${id}\\ntask +${task}\\nstate +succeeded\\n`));
    expect(found.out).to.match(/STEP +STATE +TOOK +ATTEMPT\n.*\nsay +succeeded/);
    const listed = await call(['list', '--task', task]);
    expect(listed.out).to.match(new RegExp(`${id} +${task} +succeeded +schedule`));
    expect((await call(['ls', '--task', task, '--state', 'failed'])).out).to.equal('no runs\n');
    expect((await call(['show', newId(0)])).code).to.equal(3);
  });

  it('shows all steps of a run: what they need, wait for and since when', async () => {
    const pipeline = [
      { id: 'report', uses: 'echo' },
      { id: 'pay', uses: 'approval', with: { message: 'Pay?' } },
      { id: 'send', uses: 'echo', needs: ['report', 'pay'] },
    ];
    const asked = { kind: 'approval', message: 'Pay?', on_timeout: 'fail' } as const;
    const { run, wait } = await waitingRun(api(), asked, { pipeline });
    const { out } = await call(['show', run]);
    const titles = /STEP +STATE +USES +NEEDS +TOOK +ATTEMPT +WAITS FOR +SINCE +UNTIL\n/;
    expect(out).to.match(titles);
    expect(out).to.match(/\nreport +pending +echo\n/);
    const waits = `\npay +waiting +approval +approval ${wait}: Pay\\? +20\\S+ \\S+Z +20\\S+ \\S+Z\n`;
    expect(out).to.match(new RegExp(waits));
    expect(out).to.match(/\nsend +pending +echo +report pay\n/);
  });

  it('says what the steps of waiting runs wait for, in lists and while following a run', async () => {
    const asked = { kind: 'approval', message: 'Pay?', on_timeout: 'fail' } as const;
    const { run, wait } = await waitingRun(api(), asked);
    const listed = await call(['list', '--state', 'waiting']);
    expect(listed.out).to.match(/ATTEMPT +WAITS FOR\n/);
    expect(listed.out).to.match(new RegExp(`\n${run} .* approval ${wait}: Pay\\?\n`));
    const written = new Signal<string>('the output');
    const stop = new AbortController();
    const following = call(['follow', run], { written, signal: stop.signal });
    await written.wait((text) => text === `step pay waits for approval ${wait}: Pay?\n`);
    stop.abort();
    expect((await following).code).to.equal(0);
  });

  it('shows the failed ends of a step before its present state', async () => {
    const { client, id: created_by } = api().admin;
    const payload = { pipeline: [{ id: 'flaky', uses: 'echo' }] };
    const body = { ...plainTask(created_by), payload, max_retries: 1 };
    const task_id = (await client.post('/tasks', body)).textAt('id');
    const id = await startRun(task_id);
    const failed = stepEnd('flaky', { status: 'failed', error: 'no luck', result: null });
    await api().append(`run-${id}`, [{ type: 'RunStepCompleted', data: failed }]);
    const { out } = await call(['show', id]);
    expect(out).to.match(/\nflaky +failed +echo .* 1 +no luck\n?/);
  });

  it('lists the child runs of a run', async () => {
    const task_id = await newTask();
    const parent = await startRun(task_id);
    const child = newId(Date.parse('2026-03-01T08:00:00Z'));
    const of = { task_id, created_by: api().admin.id };
    const data = request({ ...of, parent: { run_id: parent, step: 'call' } });
    await api().append(`run-${child}`, [{ type: 'RunRequested', data }]);
    const { json } = await call(['list', '--parent', parent, '--json']);
    expect((json['items'] as { id: string }[]).map(({ id }) => id)).to.deep.equal([child]);
  });

  it('follows a run with its log and steps, and exits with its result', async () => {
    for (const [finish, code, last] of [
      [succeed, 0, 'succeeded'],
      [fail, 1, 'failed: '],
    ] as const) {
      const task = await newTask();
      const id = await startRun(task);
      const written = new Signal<string>('the output');
      const following = call(['follow', id], { written });
      await written.wait((text) => text.startsWith('running'));
      await api().append(`run-${id}`, [{ type: 'RunStepCompleted', data: stepEnd('first') }]);
      await written.wait((text) => text.startsWith('step first succeeded'));
      await finish(id, task);
      const { code: ended, out } = await following;
      expect(ended).to.equal(code);
      expect(out.trimEnd().split('\n').at(-1)).to.match(new RegExp(`^${last}`));
    }
  });

  it('shows a finished run immediately', async () => {
    const task = await newTask();
    const id = await startRun(task);
    await fail(id, task);
    const { code, out } = await call(['follow', id, '--json']);
    expect(code).to.equal(1);
    const lines = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { state?: string });
    expect(lines.at(-1)).to.include({ run_id: id, state: 'failed' });
  });

  it('follows all runs of a task until it is interrupted, and exits with 0', async () => {
    const task = await newTask();
    const other = await newTask();
    const interrupt = new AbortController();
    const written = new Signal<string>('the output');
    const first = await startRun(task);
    const following = call(['follow', '--task', task, '--json'], {
      written,
      signal: interrupt.signal,
    });
    // Nothing shows whether the stream is open, so changes are made until one is reported.
    const changing = (async () => {
      while (written.values.length === 0) {
        const noise = await startRun(other);
        await succeed(noise, other);
        await startRun(task);
      }
    })();
    await written.wait();
    await changing;
    await succeed(first, task);
    await written.wait((text) => text.includes(first) && text.includes('run.ended'));
    interrupt.abort();
    const { code, out } = await following;
    expect(code).to.equal(0);
    const tasks = out
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { run: { task_id: string } }).run.task_id);
    expect(new Set(tasks)).to.deep.equal(new Set([task]));
  });

  it('retries a failed run and rejects another', async () => {
    const task = await newTask();
    const id = await startRun(task);
    await fail(id, task);
    const words = ['retry', id, '--from', 'start', '--param', 'limit=5', '--json'];
    const retried = await call(words);
    expect(retried.code, retried.err).to.equal(0);
    expect(retried.json['details']).to.include({ retry_of: id, task_id: task });
    const { run_id: retry } = retried.json['details'] as { readonly run_id: string };
    expect((await call(['show', retry])).out).to.match(/^params +\{"limit":5\}$/m);
    const running = await startRun(task);
    expect((await call(['retry', running])).code).to.equal(5);
  });

  it('cancels a run', async () => {
    const task = await newTask();
    const { client } = api().admin;
    const id = (await client.post(`/tasks/${task}/run_now`)).textAt('details.run_id');
    expect((await call(['cancel', id])).out).to.equal('the run is canceled\n');
    expect((await call(['cancel', newId(0)])).code).to.equal(3);
  });
});
