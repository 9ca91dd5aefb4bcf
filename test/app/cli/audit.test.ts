import { expect } from 'chai';
import { plainTask } from '../../api/plain-task.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { useRunningApi, type SignedIn } from '../../support/running-api.ts';
import { Signal, eventually } from '../../support/signals.ts';
import { svc, type Called, type Calling } from './command-line.ts';

describe('the command line for auditors', () => {
  const api = useRunningApi();
  let agent: SignedIn;
  let id: string;
  let name = '';
  let count = 0;
  beforeEach(async () => {
    count += 1;
    name = `auditor's agent ${count}`;
    agent = await api().signIn(['tasks:read', 'tasks:write'], name);
    id = (await agent.client.post('/tasks', plainTask(agent.id))).textAt('id');
    const headers = { 'x-reason': 'a better name' };
    await agent.client.put(`/tasks/${id}`, { title: 'renamed' }, { headers });
  });

  const call = (words: readonly string[], calling: Calling = {}): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(words, { env, ...calling });
  };
  /** Runs a command until a given output, and then interrupts it. */
  async function until(words: readonly string[], says: RegExp, meanwhile?: () => Promise<unknown>) {
    const interrupt = new AbortController();
    const written = new Signal<string>();
    const called = call(words, { clock: new QuickClock(), signal: interrupt.signal, written });
    const doing = meanwhile?.();
    await written.wait((text) => says.test(text));
    await doing;
    interrupt.abort(new Error('interrupted'));
    return called;
  }

  it('shows the history of a task and its state as of a time', async () => {
    const { out } = await call(['tasks', 'history', id]);
    expect(out).to.match(new RegExp(`^0 .* TaskCreated by ${name}$`, 'm'));
    expect(out).to.match(/^1 .* TaskUpdated by .+: a better name\n {3}title: ".*" → "renamed"$/m);
    const json = (await call(['tasks', 'history', id, '--limit', '1', '--json'])).json;
    expect(json['items']).to.have.lengthOf(1);
    expect(json['next_cursor']).to.equal('1');
    const whole = (await call(['tasks', 'history', id, '--limit', '1', '--all', '--json'])).json;
    expect(whole['items']).to.have.lengthOf(2);
    const [created] = whole['items'] as { at: string }[];
    const past = await call(['tasks', 'show', id, '--as-of', created?.at ?? '', '--json']);
    expect(past.json['revision']).to.equal(0);
    expect((await call(['tasks', 'show', id, '--as-of', '2020-01-01T00:00Z'])).code).to.equal(3);
  });

  it('prints no control characters from a history', async () => {
    const snooze = { delay_seconds: 60, reason: 'evil \u001b[2J' };
    await agent.client.post(`/tasks/${id}/snooze`, snooze);
    await agent.client.put(`/tasks/${id}`, { title: 'evil \u009b2J\u202e' });
    const { out } = await call(['tasks', 'history', id]);
    expect(out).to.include(': evil \ufffd[2J\n');
    expect(out).to.include('"evil \ufffd2J\ufffd"');
    const next = (await agent.client.get(`/tasks/${id}`)).textAt('next_run_at');
    const explained = await call(['tasks', 'explain', id, '--at', next]);
    expect(explained.out).to.include('reason: "evil \ufffd[2J"');
    for (const shown of [out, explained.out])
      expect(shown).to.not.match(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
  });

  it('shows who did what, and what was rejected', async () => {
    await agent.client.post('/agents', { name: 'x', scopes: [] });
    await api().refusals.flush();
    await api().admin.client.get(`/audit?after=${await api().store.head()}`);
    const { out } = await call(['audit', '--actor', agent.id]);
    expect(out).to.match(/refused POST \/agents \(403 forbidden\) +\/agents/);
    expect(out).to.match(
      new RegExp(`${name} .* TaskUpdated +renamed +task-${id}@1 +a better name`),
    );
    const refused = await call([
      'audit',
      '--actor',
      agent.id,
      '--type',
      'CommandRefused',
      '--json',
    ]);
    expect(refused.json['items']).to.have.lengthOf(1);
    expect((await call(['audit', '--actor', 'somebody'])).code).to.equal(2);
    const looked = ['--outcome', 'done', '--search', 'RENAMED', '--source', '127.0.0.1'];
    const found = await call(['audit', '--actor', agent.id, ...looked, '--json']);
    expect(found.json['items']).to.have.lengthOf(2);
    const none = await call(['audit', '--request', 'nothing', '--json']);
    expect(none.json['items']).to.deep.equal([]);
  });

  it('follows new actions', async () => {
    const words = ['audit', '--follow', '--stream', `task-${id}`];
    const pause = async (): Promise<void> => {
      await eventually(() => api().auditTail.size === 1);
      await agent.client.post(`/tasks/${id}/pause`);
    };
    const { code, out } = await until(words, /TaskPaused/, pause);
    expect(code).to.equal(0);
    expect(out).to.match(
      new RegExp(`TaskPaused by ${name} from 127.0.0.1 task-${id} \\(renamed\\)`),
    );
  });

  it('lists, shows and follows streams', async () => {
    const listed = await call(['streams', 'list', `task-${id}`]);
    expect(listed.out).to.match(new RegExp(`^task-${id} +1 +\\d{4}-`, 'm'));
    const shown = await call(['streams', 'show', `task-${id}`, '--direction', 'backwards']);
    expect(shown.out).to.match(
      /^1 .* TaskUpdated .*"renamed".* \(a better name\)\n0 .* TaskCreated/,
    );
    expect((await call(['streams', 'show', `task-${id}`, '--from', '9'])).out).to.equal(
      'no events\n',
    );
    const { out } = await until(['streams', 'tail', `task-${id}`, '--limit', '2'], /Paused/, () =>
      agent.client.post(`/tasks/${id}/pause`),
    );
    expect(out).to.match(/^1 .* TaskUpdated .*\n2 .* TaskPaused/m);
    expect((await call(['streams', 'show', 'nothing-here'])).code).to.equal(3);
  });
});
