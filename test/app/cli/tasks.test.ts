import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { newId } from '../../../domain/ids.ts';
import { plainTask } from '../../api/plain-task.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc, type Called, type Calling } from './command-line.ts';

describe('svc tasks', () => {
  const api = useRunningApi();
  const directory = useTemporaryDirectory();

  const env = (): Record<string, string> => ({
    SVC_URL: api().url,
    SVC_TOKEN: api().admin.client.token ?? '',
  });
  const call = (words: readonly string[], calling: Calling = {}): Promise<Called> =>
    svc(words, { env: env(), ...calling });
  const make = async (fields: object = {}): Promise<string> => {
    const body = { ...plainTask(api().admin.id), ...fields };
    return (await api().admin.client.post('/tasks', body)).textAt('id');
  };

  it('creates a task from options, owned by the caller', async () => {
    const { code, json } = await call([
      ...['tasks', 'create', '--title', 'Report', '--cron', '0 9 * * MON-FRI'],
      ...['--zone', 'Europe/Berlin', '--tag', 'a', '--tag', 'b', '--priority', '2'],
      ...['--set', 'timeout_seconds=60', '--payload', '{"pipeline":[{"uses":"echo"}]}', '--json'],
    ]);
    expect(code).to.equal(0);
    expect(json).to.deep.include({
      title: 'Report',
      description: 'Report',
      schedule_kind: 'cron',
      schedule_expr: '0 9 * * MON-FRI',
      timezone: 'Europe/Berlin',
      tags: ['a', 'b'],
      priority: 2,
      timeout_seconds: 60,
      created_by: api().admin.id,
      payload: { pipeline: [{ uses: 'echo' }] },
    });
  });

  it('creates a task from a file and from standard input', async () => {
    const text = 'title: From a file\nschedule_kind: event\nschedule_expr: orders.*\n';
    const file = join(directory(), 'task.yaml');
    writeFileSync(file, text);
    const one = await call(['tasks', 'create', '-f', file, '--json']);
    const other = await call(['tasks', 'create', '-f', '-', '--title', 'Mine', '--json'], {
      input: text,
    });
    expect(one.json).to.include({ title: 'From a file', schedule_kind: 'event' });
    expect(other.json).to.include({ title: 'Mine', schedule_expr: 'orders.*' });
  });

  it('rejects numbers that JavaScript cannot represent in JSON and YAML, with their place', async () => {
    const id = '7615917337495251231';
    const file = join(directory(), 'numbers.yaml');
    const create = ['tasks', 'create', '--title', 'Numbers', '--event', 'a'];
    const yaml = (value: string): string =>
      `payload:\n  pipeline: []\n  params: {n: [1, ${value}]}\n`;
    const says = `params.n.1: must be an integer within ±9007199254740991 (2^53 - 1), got ${id}`;
    const payload = `{"pipeline": [], "params": {"n": [1, ${id}]}}`;
    writeFileSync(file, payload);
    for (const [words, message, input] of [
      [[...create, '--payload', payload], `--payload: ${says}`],
      [[...create, '--payload', `@${file}`], `${file}: ${says}`],
      [[...create, '--set', `payload=${payload}`], `--set payload: ${says}`],
      [[...create, '-f', '-'], `-: payload.${says}`, yaml(id)],
      [[...create, '-f', '-'], '-: payload.params.n.1: must be a number', yaml('.inf')],
      [[...create, '-f', '-'], '-: payload.params.n.1: must be a number', yaml('1e400')],
      [['events', 'publish', 'a', `{"n": ${id}}`], 'the payload: n: must be an integer'],
      [['events', 'publish', 'a', '{"n": 1e400}'], 'the payload: n: must be a number'],
      [['apply', '-f', '-'], '-: tasks.0.payload.n: must be', `tasks: [{payload: {n: ${id}}}]`],
    ] as const) {
      const { code, err } = await call(words, input === undefined ? {} : { input });
      expect(code, words.join(' ')).to.equal(2);
      expect(err).to.include(message).and.to.include('send it as a string');
    }
    for (const value of ['9007199254740991', `"${id}"`, '1.5', '0x10', '-3']) {
      const { code, json } = await call([...create, '-f', '-', '--json'], { input: yaml(value) });
      expect(code, value).to.equal(0);
      const { params } = (json as { payload: { params: { n: unknown[] } } }).payload;
      expect(params.n[1], value).to.equal(value.startsWith('"') ? id : Number(value));
    }
  });

  it('lists tasks as a table with a hint to continue', async () => {
    await make({ title: 'Listed', tags: ['listed'] });
    await make({ title: 'Listed too', tags: ['listed'] });
    const whole = await call(['tasks', 'list', '--tag', 'listed']);
    expect(whole.out).to.match(/^ID +TITLE +STATUS +SCHEDULE +NEXT RUN +LAST RUN$/m);
    expect(whole.out).to.match(/Listed too +active +every hour, UTC +\d{4}-\d\d-\d\d \d\d:00:00Z/);
    expect(whole.out).to.not.include('--cursor');
    const part = await call(['tasks', 'ls', '--tag', 'listed', '--limit', '1']);
    expect(part.out).to.match(/1 of 2 tasks; continue with --cursor \S+, or use --all/);
    const all = await call(['tasks', 'ls', '--tag', 'listed', '--limit', '1', '--all', '--json']);
    expect(all.json['items']).to.have.lengthOf(2);
    expect((await call(['tasks', 'ls', '--tag', 'nobody has it'])).out).to.equal('no tasks\n');
  });

  it('colours states only on a terminal, unless that is turned off', async () => {
    const id = await make();
    const words = ['tasks', 'ls', '--limit', '1'];
    const coloured = '\u001b[32mactive';
    expect((await call(words, { terminal: true })).out).to.include(coloured);
    expect((await call(words)).out).to.not.include('\u001b');
    expect((await call([...words, '--no-color'], { terminal: true })).out).to.not.include('\u001b');
    const quiet = { ...env(), NO_COLOR: '1' };
    expect((await call(words, { terminal: true, env: quiet })).out).to.not.include('\u001b');
    expect(id).to.not.equal('');
  });

  it('prints no control characters from a title', async () => {
    await make({ title: 'evil \u001b[2J\u202e', tags: ['evil'] });
    const { out } = await call(['tasks', 'ls', '--tag', 'evil']);
    expect(out).to.include('evil �[2J�');
  });

  it('shows, changes, pauses, resumes, snoozes and cancels', async () => {
    const id = await make({ title: 'Changing' });
    expect((await call(['tasks', 'show', id])).out).to.match(
      /title +Changing\nstatus +active\nschedule +every hour, UTC\nexpression +cron 0 \* \* \* \* UTC\n/,
    );
    const changed = await call(['tasks', 'update', id, '--title', 'Changed', '--if-revision', '0']);
    expect(changed.out).to.match(/title +Changed/);
    const stale = await call(['tasks', 'update', id, '--title', 'Stale', '--if-revision', '0']);
    expect(stale).to.include({ code: 5, out: '' });
    expect((await call(['tasks', 'pause', id])).out).to.equal('the task is paused\n');
    expect((await call(['tasks', 'show', id])).out).to.match(/\npaused +by .+ at \d{4}-.+\n/);
    expect((await call(['tasks', 'snooze', id, '2h'])).code).to.equal(5);
    expect((await call(['tasks', 'resume', id, '--missed', 'latest'])).code).to.equal(0);
    const snoozed = await call(['tasks', 'snooze', id, '90m']);
    expect(snoozed.out).to.match(
      /^the next fire is postponed; next run \d{4}-\d\d-\d\d \d\d:30:00Z\n$/,
    );
    const shown = (await call(['tasks', 'show', id])).out;
    expect(shown).to.match(/\nsnoozed +until .+ by .+ at .+\n/);
    expect(shown).to.not.include('[object');
    expect((await call(['tasks', 'cancel', id])).code).to.equal(0);
    expect((await call(['tasks', 'pause', id])).err).to.match(
      /^svc: a canceled task can't be paused/,
    );
  });

  it('runs a task and records the reason', async () => {
    const id = await make();
    const { code, out } = await call(['tasks', 'run', id, '--reason', 'to see it']);
    expect(code).to.equal(0);
    const run = /: (\S+)\n$/.exec(out)?.[1] ?? '';
    const [requested] = await api().store.readStream(`run-${run}`);
    expect(requested?.metadata.reason).to.equal('to see it');
  });

  it('runs a task with params, each JSON or a string, which override --params', async () => {
    const schema = '{"type": "object", "properties": {"limit": {"type": "integer"}}}';
    const id = await make({ payload: { params: { limit: 1, shop: 'a' }, pipeline: [] } });
    const changed = await call(['tasks', 'update', id, '--params-schema', schema]);
    expect(changed.out).to.match(/^params schema +\{$/m);
    const words = ['tasks', 'run', id, '--params', '{"limit": 2, "list": [1], "old": true}'];
    const more = ['--param', 'limit=5', '--param', 'shop=b=c', '--param', 'none=null'];
    const { out } = await call([...words, ...more, '--wait', '0']);
    const shown = { limit: 5, shop: 'b=c', list: [1], old: true, none: null };
    const [, params = ''] = /^params +(\{.*\})$/m.exec(out) ?? [];
    expect(JSON.parse(params)).to.deep.equal(shown);
    const refused = await call(['tasks', 'run', id, '--param', 'limit=many']);
    expect(refused.code).to.equal(2);
    expect(refused.err).to.include('params.limit: must be integer');
    for (const [wrong, message] of [
      [['--param', 'limit'], '--param limit: must be key=value'],
      [['--param', '=5'], '--param =5: must be key=value'],
      [['--param', 'limit=9007199254740993'], '--param limit'],
      [['--params', '[1]'], '--params must be a JSON object'],
    ] as const) {
      const { code, err } = await call(['tasks', 'run', id, ...wrong]);
      expect(code, message).to.equal(2);
      expect(err).to.include(message);
    }
  });

  it('exits with 1 if the run does not end in time', async () => {
    // Nobody executes runs here.
    const { code, out, err } = await call(['tasks', 'run', await make(), '--wait', '1']);
    expect(out).to.match(/^state +queued$/m);
    expect(err).to.match(/^it did not end within 1 s; to follow it: svc runs follow [0-9a-f-]{36}/);
    expect(code).to.equal(1);
  });

  it('previews a new schedule and that of a task', async () => {
    const words = ['--from', '2027-03-27T00:00Z', '--count', '3'];
    const cron = ['--cron', '30 2 * * *', '--zone', 'Europe/Berlin'];
    const free = await call(['tasks', 'preview', ...cron, ...words]);
    expect(free.out).to.match(
      /2027-03-28 01:30:00Z +2027-03-28T03:30:00\S* +2027-03-28T02:30\S* does not exist/,
    );
    expect(free.out).to.match(/^at 02:30, every day, Europe\/Berlin\n\n/);
    const id = await make();
    const own = await call(['tasks', 'preview', id, ...words, '--json']);
    expect(own.json['fires']).to.have.lengthOf(3);
    expect((await call(['tasks', 'preview'])).code).to.equal(2);
  });

  it('lists the times that a backfill would run', async () => {
    const id = await make({ schedule_expr: '0 * * * *' });
    const span = ['--from', '2026-01-01T00:30Z', '--to', '2026-01-01T03:30Z'];
    const dry = await call(['tasks', 'backfill', id, ...span, '--only', 'all', '--dry-run']);
    expect(dry.code, dry.err).to.equal(0);
    expect(dry.out).to.match(/^nothing was requested\n/);
    expect(dry.out).to.match(
      /\n\n2026-01-01 01:00:00Z\n2026-01-01 02:00:00Z\n2026-01-01 03:00:00Z\n$/,
    );
    const long = ['--from', '2026-01-01T00:30Z', '--to', '2026-01-02T00:30Z', '--dry-run'];
    const most = await call(['tasks', 'backfill', id, ...long, '--only', 'all']);
    expect(most.out).to.match(/\n2026-01-01 20:00:00Z\nand 4 more\n$/);
    expect((await call(['tasks', 'backfill', id, '--from', '2026-01-01T00:30Z'])).code).to.equal(2);
  });

  it('shows defaults in the help of create only', async () => {
    const making = (await call(['tasks', 'create', '--help'])).out;
    for (const said of [
      '(default: the title)',
      '(default: UTC)',
      '(default: no step)',
      '(default: the caller)',
    ])
      expect(making).to.include(said);
    expect((await call(['tasks', 'update', '--help'])).out).not.to.match(
      /title\)|UTC|no step|caller/,
    );
  });

  it('explains why nothing fired', async () => {
    const id = await make();
    const { code, out } = await call(['tasks', 'explain', id, '--at', '2020-01-01T00:17']);
    expect(code).to.equal(0);
    expect(out).to.match(/^\w+: .+\n\nat +2020-01-01 00:17:00Z\n/);
  });

  const refused: readonly (readonly [why: string, words: readonly string[], code: number])[] = [
    ['an unknown command', ['tusks', 'list'], 2],
    ['no command at all', [], 2],
    ['a group without a command', ['tasks'], 2],
    ['an unknown option', ['tasks', 'list', '--colour'], 2],
    ['a value that is not allowed', ['tasks', 'list', '--status', 'asleep'], 2],
    ['a value out of range', ['tasks', 'list', '--limit', '201'], 2],
    ['a missing id', ['tasks', 'show'], 2],
    ['two schedules', ['tasks', 'create', '--cron', '* * * * *', '--event', 'a'], 2],
    ['no schedule', ['tasks', 'create', '--title', 'x'], 2],
    ['nothing to change', ['tasks', 'update', newId(0)], 2],
    [
      'a value that the service refuses',
      ['tasks', 'create', '--title', 'x', '--cron', '61 * * * *'],
      2,
    ],
    ['a malformed id', ['tasks', 'show', '4711'], 2],
    ['an id with a slash', ['tasks', 'show', '../agents'], 2],
    ['a task that does not exist', ['tasks', 'show', newId(0)], 3],
    ['a broken payload', ['tasks', 'create', '--title', 'x', '--payload', '{'], 2],
    ['a missing file', ['tasks', 'create', '-f', '/nowhere/task.yaml'], 2],
    ['an invalid time', ['tasks', 'snooze', newId(0), 'soon'], 2],
  ];
  for (const [why, words, code] of refused) {
    it(`exits with ${code} for ${why}`, async () => {
      const called = await call(words);
      expect(called.code).to.equal(code);
      expect(called.out).to.equal('');
      expect(called.err).to.not.equal('');
    });
  }

  it('names the schedule options if a new task has none', async () => {
    const { err } = await call(['tasks', 'create', '--title', 'x']);
    expect(err).to.match(/--cron, --rrule, --once or --event/);
  });

  it('exits with 4 without a token, with a wrong one, and without a scope', async () => {
    const SVC_URL = api().url;
    const nobody = await call(['tasks', 'ls'], { env: { SVC_URL, SVC_DATA_DIR: directory() } });
    expect(nobody.code).to.equal(4);
    expect(nobody.err).to.include('set SVC_TOKEN');
    expect((await call(['tasks', 'ls'], { env: { SVC_URL, SVC_TOKEN: 'a.b.c' } })).code).to.equal(
      4,
    );
    const { client } = await api().signIn(['runs:read']);
    const few = await call(['tasks', 'ls'], { env: { SVC_URL, SVC_TOKEN: client.token ?? '' } });
    expect(few.code).to.equal(4);
    expect(few.err).to.include('tasks:read');
  });

  it('exits with 6 without a service', async () => {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    await new Promise((closed) => server.close(closed));
    const SVC_URL = `http://127.0.0.1:${port}`;
    const called = await call(['tasks', 'ls'], { env: { ...env(), SVC_URL } });
    expect(called.code).to.equal(6);
    expect(called.err).to.include(
      `svc: no response from ${SVC_URL} (ECONNREFUSED); is the service`,
    );
  });

  it('lists all issues of a request', async () => {
    const { err } = await call(['tasks', 'create', '--title', 'x', '--set', 'a=1', '--set', 'b=2']);
    expect(err.split('\n').length).to.be.greaterThan(3);
    expect(err).to.match(/^svc: the service rejected the request:\n {2}\w+: /);
  });
});
