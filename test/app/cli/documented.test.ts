import { expect } from 'chai';
import { join } from 'node:path';
import { newId } from '../../../domain/ids.ts';
import { streams } from '../../../domain/streams.ts';
import { plainTask } from '../../api/plain-task.ts';
import { start } from '../../api/endpoints/runs/failed-runs.ts';
import { read } from '../../docs/documents.ts';
import { stepEnd } from '../../projections/recorded.ts';
import { projectRoot } from '../../support/project-root.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc } from './command-line.ts';

/** The output of a call in docs/reference/command-line.md, by the words of the call. */
const screens: ReadonlyMap<string, string> = new Map(
  [
    ...read('docs/reference/command-line.md').matchAll(
      /^```console\n\$ svc (.+)\n([\s\S]*?)^```$/gm,
    ),
  ].map(([, words = '', screen = '']) => [words, screen]),
);

/** Removes the variable parts: ids, times, durations, and so the widths of columns. */
function shape(screen: string): string {
  return screen
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<id>')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, '<time>')
    .replaceAll(/\d+(\.\d+)? s\b/g, '<seconds>')
    .replaceAll(/─+/g, '─')
    .replaceAll(/ +/g, ' ')
    .replaceAll(/ $/gm, '');
}

describe('the documented outputs', () => {
  const api = useRunningApi();
  const call = async (words: readonly string[]): Promise<string> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    const called = await svc(words, { env, columns: 100 });
    expect(called.err).to.equal('');
    return called.out;
  };
  const documented = (begins: string): readonly [words: string, screen: string] => {
    const found = [...screens].find(([words]) => words.startsWith(begins));
    if (found === undefined) throw new Error(`no documented output begins with svc ${begins}`);
    return found;
  };

  it('match the help exactly', async () => {
    const [words, screen] = documented('--help');
    expect(await call([words])).to.equal(screen);
  });

  it('match a preview exactly', async () => {
    const [words, screen] = documented('tasks preview');
    const parts = [...words.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, bare]) => quoted ?? bare);
    expect(await call(parts.map((each) => each ?? ''))).to.equal(screen);
  });

  it('match the example file of tasks, which can be applied', async () => {
    const example = 'examples/tasks.yaml';
    const [, shown] =
      /^```yaml\n([\s\S]*?)^```$/m.exec(read('docs/reference/command-line.md')) ?? [];
    expect(shown).to.equal(read(example));
    const said = await call(['apply', '-f', join(projectRoot, example), '--dry-run']);
    expect(said).to.include('nightly: 2 to do');
  });

  it('match a list of tasks and a run except for ids and times', async () => {
    const { admin } = api();
    const nightly = await admin.client.post('/tasks', {
      ...plainTask(admin.id),
      title: 'Nightly copy',
      schedule_expr: '30 2 * * *',
      timezone: 'Europe/Berlin',
      payload: {
        pipeline: [
          { id: 'say', uses: 'echo', with: { text: 'copying' } },
          { id: 'store', uses: 'http.request', with: { url: 'http://backups.example/' } },
        ],
      },
    });
    const { schedule_expr: _expression, ...event } = plainTask(admin.id);
    await admin.client.post('/tasks', {
      ...event,
      title: 'Welcome',
      schedule_kind: 'event',
      schedule_expr: 'orders.*',
    });
    const task = nightly.textAt('id');
    const asked = await admin.client.post(`/tasks/${task}/run_now`);
    const run = asked.textAt('details.run_id');
    const error = 'the disk is full';
    const say = stepEnd('say', { result: { text: 'copying' } });
    const store = stepEnd('store', { status: 'failed', result: null, error });
    const summary = { total_steps: 2, executed_steps: 2, skipped_steps: 0, failed_step: 'store' };
    await api().append(streams.run(run), [
      start,
      {
        type: 'RunFailed',
        data: {
          task_id: task,
          started_at: new Date(api().clock.now()).toISOString(),
          attempt: 1,
          error,
          step: 'store',
          steps: [say, store],
          output: { steps: { say: { text: 'copying' } }, summary },
        },
      },
    ]);
    await admin.client.get(`/runs?after=${await api().store.head()}`);
    const [, shown] = documented('runs show');
    expect(shape(await call(['runs', 'show', run]))).to.equal(shape(shown));
    const [words, listed] = documented('tasks list');
    expect(shape(await call(words.split(' ')))).to.equal(shape(listed));
  });

  it('match a list of deliveries except for ids and times', async () => {
    const { client } = api().admin;
    const url = 'https://receiver.example/hook';
    const agent = { name: 'receiver', scopes: [], webhook_url: url };
    const id = (await client.post('/agents', agent)).textAt('id');
    const answered = { attempt: 1, secret_version: 0, took_ms: 3, url };
    const [run_id, failed] = [newId(0), newId(1)];
    const timestamp = new Date(api().clock.now()).toISOString();
    const payload = { type: 'run.failed' as const, timestamp, data: {} };
    const message = { agent_id: id, event_id: newId(0), task_id: newId(0), run_id, payload };
    const error = 'the receiver answered 503';
    const refused = { ...answered, status: 503, answer: '', error, retry_at: timestamp, end: null };
    await api().append(streams.webhook(failed), [
      { type: 'WebhookScheduled', data: message },
      { type: 'WebhookFailed', data: refused },
    ]);
    const sent = await client.post(`/agents/${id}/webhook-test`);
    const taken = { ...answered, status: 200, answer: 'ok' };
    await api().append(streams.webhook(sent.textAt('details.delivery_id')), [
      { type: 'WebhookDelivered', data: taken },
    ]);
    await client.get(`/agents/${id}/webhooks/deliveries?after=${await api().store.head()}`);
    const [, shown] = documented('webhooks list');
    expect(shape(await call(['webhooks', 'list', id]))).to.equal(shape(shown));
  });
});
