import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plainTask } from '../../api/plain-task.ts';
import { QuickClock } from '../../support/quick-clock.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { Signal } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc, type Called, type Calling } from './command-line.ts';

/** The number of pauses. */
class CountingClock extends QuickClock {
  pauses = 0;

  override sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    this.pauses += 1;
    return super.sleep(milliseconds, signal);
  }
}

describe('the command line', () => {
  const api = useRunningApi();
  const directory = useTemporaryDirectory();

  const call = (words: readonly string[], calling: Calling = {}): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(words, { env, ...calling });
  };

  it('creates, lists, changes and removes agents', async () => {
    const words = ['agents', 'create', 'reporting', '--scope', 'tasks:read', '--json'];
    const made = await call([...words, '--scope', 'runs:read']);
    const id = String(made.json['id']);
    expect(made.json['scopes']).to.deep.equal(['tasks:read', 'runs:read']);
    expect((await call(['agents', 'list', '--name', 'report'])).out).to.match(
      new RegExp(`${id} +reporting +tasks:read runs:read`),
    );
    const changed = await call(['agents', 'update', id, '--name', 'reports', '--scope', 'admin']);
    expect(changed.out).to.match(/name +reports\nscopes +admin\n/);
    expect((await call(['agents', 'show', id, '--json'])).json).to.include({ name: 'reports' });
    expect((await call(['agents', 'create', 'reports'])).code).to.equal(5);
    expect((await call(['agents', 'delete', id])).out).to.equal('the agent is removed\n');
    expect((await call(['agents', 'show', id])).code).to.equal(3);
  });

  it('rejects ids that would disappear from a URL', async () => {
    for (const words of [
      ['tasks', 'show', ''],
      ['tasks', 'cancel', '.'],
      ['runs', 'show', '..'],
      ['runs', 'follow', ''],
      ['agents', 'show', '.'],
      ['concurrency', '.'],
    ]) {
      const { code, out, err } = await call(words);
      expect([code, out], words.join(' ')).to.deep.equal([2, '']);
      expect(err, words.join(' ')).to.match(/an id is empty|is (not an|no) id/);
    }
  });

  it('fails immediately if it follows events without a service', async () => {
    const env = { SVC_URL: 'http://127.0.0.1:2', SVC_TOKEN: 'any' };
    for (const words of [
      ['runs', 'follow'],
      ['audit', '--follow'],
    ]) {
      const clock = new CountingClock();
      const { code, err } = await svc(words, { env, clock });
      expect([code, clock.pauses], words.join(' ')).to.deep.equal([6, 0]);
      expect(err).to.not.equal('');
    }
  });

  it('signs in with credentials, from the environment or from the data directory', async () => {
    const made = await call(['agents', 'create', 'operator', '--scope', 'tasks:read', '--json']);
    const id = String(made.json['id']);
    const given = await call(['agents', 'credentials', id, '--json']);
    const credentials = given.json as { agent_id: string; agent_secret: string };
    const SVC_URL = api().url;
    const env = { SVC_URL, SVC_AGENT_ID: id, SVC_AGENT_SECRET: credentials.agent_secret };
    expect((await svc(['tasks', 'ls'], { env })).code).to.equal(0);
    const wrong = { ...env, SVC_AGENT_SECRET: 'not the secret it has' };
    expect((await svc(['tasks', 'ls'], { env: wrong })).code).to.equal(4);
    const half = await svc(['tasks', 'ls'], { env: { SVC_URL, SVC_AGENT_ID: id } });
    expect(half).to.include({ code: 2, out: '' });
    expect(half.err).to.include('SVC_AGENT_SECRET is not set');
    writeFileSync(join(directory(), 'admin-credentials.json'), JSON.stringify(credentials));
    const kept = { SVC_URL, SVC_DATA_DIR: directory() };
    expect((await svc(['tasks', 'ls'], { env: kept })).code).to.equal(0);
    writeFileSync(join(directory(), 'admin-credentials.json'), '{');
    expect((await svc(['tasks', 'ls'], { env: kept })).code).to.equal(4);
  });

  it('reports an invalid address as such', async () => {
    for (const SVC_URL of ['nonsense', 'ftp://127.0.0.1', 'http:']) {
      const called = await svc(['tasks', 'ls'], { env: { SVC_URL, SVC_TOKEN: 'any' } });
      expect(called).to.include({ code: 2, out: '' });
      expect(called.err).to.include(`${SVC_URL} is not a service address`);
    }
  });

  it('reports an invalid token as such', async () => {
    for (const SVC_TOKEN of ['a token', 'to\nken', '…']) {
      const { code, err } = await svc(['tasks', 'list'], {
        env: { SVC_URL: api().url, SVC_TOKEN },
      });
      expect(code).to.equal(4);
      expect(err).to.match(/^svc: SVC_TOKEN is not a token: /);
    }
  });

  it('reads a secret from standard input', async () => {
    const made = await call(['agents', 'create', 'given', '--json']);
    const id = String(made.json['id']);
    const input = 'a secret of my own\n';
    const words = ['agents', 'credentials', id, '--secret-from-input', '--json'];
    expect((await call(words, { input })).json).to.include({ agent_secret: 'a secret of my own' });
  });

  it('publishes events, and shows them', async () => {
    const topic = 'orders.shown';
    const { client, id } = api().admin;
    const fields = { schedule_kind: 'event', schedule_expr: 'orders.shown' };
    await client.post('/tasks', { ...plainTask(id), ...fields });
    const published = await call(['events', 'publish', topic, '{"order": 4711}']);
    expect(published.out).to.match(/^\S+ triggers 1 task\n$/);
    expect((await call(['events', 'topics'])).out).to.match(/orders\.shown +1 +/);
    const shown = await call(['events', 'tail', '--topic', topic]);
    expect(shown.out).to.match(/^\d{4}\S+ \S+ orders\.shown \{"order":4711\} → 1 task\n$/);
    expect((await call(['events', 'publish', topic, '[1]'])).code).to.equal(2);
    expect((await call(['events', 'publish', 'no topic', '{}'])).code).to.equal(2);
  });

  it('follows new events, each once', async () => {
    const topic = 'orders.followed';
    const publish = (n: number): Promise<Called> =>
      call(['events', 'publish', topic, JSON.stringify({ n })]);
    await publish(1);
    const written = new Signal<string>('the output');
    const interrupt = new AbortController();
    const words = ['events', 'tail', '--follow', '--topic', topic, '--json'];
    const following = call(words, { written, signal: interrupt.signal, clock: new QuickClock() });
    await written.wait((text) => text.includes('"n":1'));
    await publish(2);
    await publish(3);
    await written.wait((text) => text.includes('"n":3'));
    interrupt.abort();
    const { code, out } = await following;
    expect(code).to.equal(0);
    const numbers = out
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { payload: { n: number } }).payload.n);
    expect(numbers).to.deep.equal([1, 2, 3]);
  });

  it('shows statistics, health and a concurrency key', async () => {
    const stats = await call(['stats', '--days', '3']);
    expect(stats.out).to.match(/^days +3\nruns +\d+: /);
    expect(stats.out.match(/^\d{4}-\d\d-\d\d /gm)).to.have.lengthOf(3);
    const task = await api().admin.client.post('/tasks', plainTask(api().admin.id));
    const one = await call(['stats', '--task', task.textAt('id'), '--json']);
    expect(one.json).to.include({ period_days: 30, total_runs: 0 });
    const key = await call(['concurrency', 'a/b key']);
    expect(key.out).to.equal('a/b key: no active task uses it, 0 running, 0 waiting\n');
  });

  it('has help with examples for every command, and prints its version', async () => {
    const help = await call(['--help']);
    expect(help.code).to.equal(0);
    const names = [...help.out.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name ?? '');
    expect(names).to.include.members(['tasks', 'runs', 'agents', 'events', 'apply', 'simulate']);
    const without: string[] = [];
    for (const name of names) {
      const { code, out } = await call([name, '--help']);
      expect(code).to.equal(0);
      const verbs = out.split('\nCommands:\n')[1]?.matchAll(/^ {2}([a-z-]+)/gm) ?? [[]];
      for (const [, verb] of verbs) {
        const words = verb === undefined ? [name] : [name, verb];
        const help = await call([...words, '--help']);
        if (!help.out.includes('\nExamples:\n  $ svc ')) without.push(words.join(' '));
      }
    }
    expect(without).to.deep.equal([]);
    // As in the interface: both ends are exclusive.
    expect((await call(['runs', 'list', '--help'])).out).to.match(
      /--since <instant> +started after/,
    );
    const create = await call(['tasks', 'create', '--help']);
    expect(create.out).to.include('Examples:\n  $ svc tasks create --title "Morning report"');
    expect(await call(['--version'])).to.include({ code: 0, out: '1.2.3\n' });
    const slip = await call(['task', 'list']);
    expect(slip.err).to.include('Did you mean tasks?');
  });
});
