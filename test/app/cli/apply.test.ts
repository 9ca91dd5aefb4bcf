import { expect } from 'chai';
import type { TaskRecord } from '../../../app/cli/calling/records.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

interface Applied {
  readonly code: number;
  readonly err: string;
  readonly unchanged: number;
  readonly steps: readonly string[];
  readonly errors: readonly string[];
}

describe('svc apply', () => {
  const api = useRunningApi();
  let sets = 0;

  const call = (words: readonly string[], input: string): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(['apply', '-f', '-', ...words], { env, input });
  };

  /** A separate set for each test, which sees no tasks of another. */
  const newSet = (): string => `set-${(sets += 1)}`;

  async function apply(
    set: string,
    tasks: readonly object[],
    ...words: string[]
  ): Promise<Applied> {
    const input = JSON.stringify({ set, tasks });
    const { code, err, out } = await call([...words, '--json'], input);
    if (out === '') return { code, err, unchanged: 0, steps: [], errors: [] };
    const { unchanged, steps } = JSON.parse(out) as {
      unchanged: number;
      steps: { action: string; name: string; changes?: object; error: string | null }[];
    };
    return {
      code,
      err,
      unchanged,
      steps: steps.map(({ action, name, changes = {} }) =>
        [action, name, ...Object.keys(changes)].join(' '),
      ),
      errors: steps.flatMap(({ error }) => (error === null ? [] : [error])),
    };
  }

  async function tasksOf(set: string): Promise<readonly TaskRecord[]> {
    const { client } = api().admin;
    const answer = await client.get(`/tasks?tag=apply:${set}&limit=200`);
    return answer.at('items') as readonly TaskRecord[];
  }

  const hourly = (name: string, fields: object = {}): object => ({
    name,
    schedule_kind: 'cron',
    schedule_expr: '0 * * * *',
    ...fields,
  });

  it('does not change a task whose payload is too large for a list', async () => {
    const set = newSet();
    const text = 'x'.repeat(70_000);
    const large = hourly('large', { payload: { pipeline: [{ uses: 'echo', with: { text } }] } });
    expect((await apply(set, [large])).steps).to.deep.equal(['create large']);
    const again = await apply(set, [large]);
    expect([again.code, again.steps, again.unchanged]).to.deep.equal([0, [], 1]);
  });

  it('creates missing tasks and finds them again', async () => {
    const set = newSet();
    const tasks = [hourly('one', { tags: ['mine'] }), hourly('two', { paused: true })];
    expect(await apply(set, tasks)).to.deep.include({
      code: 0,
      steps: ['create one', 'create two'],
    });
    const made = await tasksOf(set);
    expect(made.map(({ title, status }) => `${title} ${status}`)).to.have.members([
      'one active',
      'two paused',
    ]);
    expect(made.find(({ title }) => title === 'one')?.tags).to.deep.equal([
      'mine',
      `apply:${set}`,
      `apply:${set}/one`,
    ]);
    expect(await apply(set, tasks)).to.deep.include({ code: 0, steps: [], unchanged: 2 });
  });

  it('changes only different fields and resets omitted ones to their defaults', async () => {
    const set = newSet();
    await apply(set, [hourly('one', { priority: 2, max_retries: 7 })]);
    const [before] = await tasksOf(set);
    const changed = await apply(set, [hourly('one', { priority: 1 })]);
    expect(changed.steps).to.deep.equal(['change one priority max_retries']);
    const [after] = await tasksOf(set);
    expect(after).to.include({ id: before?.id, priority: 1, max_retries: 3 });
  });

  it('cancels tasks that left the file and creates them again when they return', async () => {
    const set = newSet();
    await apply(set, [hourly('one'), hourly('two')]);
    expect((await apply(set, [hourly('two')])).steps).to.deep.equal(['cancel one']);
    expect((await apply(set, [hourly('one'), hourly('two')])).steps).to.deep.equal(['create one']);
    const statuses = (await tasksOf(set)).map(({ title, status }) => `${title} ${status}`);
    expect(statuses).to.have.members(['one canceled', 'one active', 'two active']);
  });

  it('pauses and resumes', async () => {
    const set = newSet();
    await apply(set, [hourly('one')]);
    const paused = await apply(set, [hourly('one', { paused: true, priority: 9 })]);
    expect(paused.steps).to.deep.equal(['pause one', 'change one priority']);
    expect(paused.code).to.equal(0);
    expect((await apply(set, [hourly('one', { priority: 9 })])).steps).to.deep.equal([
      'resume one',
    ]);
    expect((await tasksOf(set))[0]).to.include({ status: 'active', priority: 9 });
  });

  it('shows with --dry-run what the service would reject', async () => {
    const faults: readonly object[] = [
      { schedule_expr: '0 99 * * *' },
      { schedule_kind: 'once', schedule_expr: '2020-01-01T00:00:00Z' },
      { schedule_expr: null },
      { timezone: 'Mars/Olympus' },
      { title: '' },
      { payload: {} },
      { payload: { pipeline: [{ uses: '' }] } },
    ];
    const tasks = faults.map((fault, at) => hourly(`task-${String(at)}`, fault));
    const set = newSet();
    const tried = await apply(set, tasks, '--dry-run');
    expect(tried.code).to.equal(2);
    expect(tried.errors).to.have.lengthOf(faults.length);
    expect(await tasksOf(set)).to.deep.equal([]);
    const done = await apply(set, tasks);
    expect([done.code, done.errors]).to.deep.equal([tried.code, tried.errors]);
  });

  it('checks only the changed fields with --dry-run', async () => {
    const set = newSet();
    const at = new Date(api().clock.now() + 60_000).toISOString();
    const soon = hourly('soon', { schedule_kind: 'once', schedule_expr: at });
    await apply(set, [soon, hourly('other')]);
    const changed = { ...soon, title: 'Renamed' };
    const tried = await apply(
      set,
      [changed, hourly('other', { schedule_expr: '* * 30 2 *' })],
      '--dry-run',
    );
    expect(tried.steps).to.deep.equal([
      'change soon title description',
      'change other schedule_expr',
    ]);
    expect(tried.errors).to.deep.equal(['schedule_expr: has no future fire']);
    expect(tried.code).to.equal(2);
  });

  it('changes nothing with --dry-run', async () => {
    const set = newSet();
    await apply(set, [hourly('one')]);
    const document = { set, tasks: [hourly('one', { priority: 1 }), hourly('two')] };
    const { out, code } = await call(['--dry-run'], JSON.stringify(document));
    expect(code).to.equal(0);
    expect(out).to.match(/^~ change one \S+\n {4}priority: 5 → 1\n\+ create two\n/);
    expect(out).to.include(`${set}: 2 to do, 0 unchanged`);
    expect(await tasksOf(set)).to.have.lengthOf(1);
    expect((await tasksOf(set))[0]).to.include({ priority: 5 });
  });

  it('does not change other sets and tasks, even if one name is a prefix of another', async () => {
    const [set, longer] = [newSet(), newSet()].map((name) => name) as [string, string];
    await apply(`${set}.x`, [hourly('one')]);
    await apply(longer, [hourly('one')]);
    expect((await apply(set, [])).steps).to.deep.equal([]);
    expect((await tasksOf(`${set}.x`))[0]).to.include({ status: 'active' });
  });

  it('treats differently written timestamps as equal', async () => {
    const set = newSet();
    const inBerlin = { timezone: 'Europe/Berlin' };
    const bounded = hourly('one', { ...inBerlin, ends_at: '2030-07-01T12:00:00' });
    await apply(set, [bounded]);
    expect((await tasksOf(set))[0]).to.include({ ends_at: '2030-07-01T10:00:00.000Z' });
    expect((await apply(set, [bounded])).steps).to.deep.equal([]);
    const days = hourly('one', { ...inBerlin, starts_at: '2030-07-01', ends_at: '2030-07-01' });
    await apply(set, [days]);
    expect((await tasksOf(set))[0]).to.include({
      starts_at: '2030-06-30T22:00:00.000Z',
      ends_at: '2030-07-01T21:59:59.999Z',
    });
    expect((await apply(set, [days])).steps).to.deep.equal([]);
  });

  it('cancels the younger of two tasks with one name', async () => {
    const set = newSet();
    await apply(set, [hourly('one')]);
    const [older] = await tasksOf(set);
    const { id: _id, ...fields } = hourly('one') as Record<string, unknown>;
    const { name: _name, ...rest } = fields;
    const twin = { ...rest, title: 'one', description: 'one', tags: older?.tags };
    const body = { ...twin, created_by: api().admin.id, payload: { pipeline: [] } };
    await api().admin.client.post('/tasks', body);
    expect((await apply(set, [hourly('one')])).steps).to.deep.equal(['cancel one']);
    const living = (await tasksOf(set)).filter(({ status }) => status !== 'canceled');
    expect(living.map(({ id }) => id)).to.deep.equal([older?.id]);
  });

  it('continues after a rejected task and exits with its code', async () => {
    const set = newSet();
    const applied = await apply(set, [
      hourly('bad', { schedule_expr: '61 * * * *' }),
      hourly('good'),
    ]);
    expect(applied.code).to.equal(2);
    expect(applied.errors).to.have.lengthOf(1);
    expect(applied.errors[0]).to.include('the minute field');
    expect((await tasksOf(set)).map(({ title }) => title)).to.deep.equal(['good']);
  });

  it('applies the defaults of a YAML file', async () => {
    const set = newSet();
    const file = [
      `set: ${set}`,
      'defaults: { timezone: Asia/Kathmandu, priority: 4 }',
      'tasks:',
      '  - name: one',
      '    schedule_kind: once',
      '    schedule_expr: 2030-01-01T00:00',
      '  - name: two',
      '    schedule_kind: event',
      '    priority: 3',
    ].join('\n');
    expect((await call([], file)).code).to.equal(0);
    const made = await tasksOf(set);
    expect(
      made.map(({ title, timezone, priority }) => `${title} ${timezone} ${priority}`),
    ).to.have.members(['one Asia/Kathmandu 4', 'two Asia/Kathmandu 3']);
    expect((await call([], file)).out).to.equal(`${set}: 0 done, 2 unchanged\n`);
  });

  const faults: readonly (readonly [what: string, file: string, says: RegExp])[] = [
    ['broken YAML', 'set: [', /^svc: -: /],
    ['no set', 'tasks: []', /set: must be a name/],
    ['an invalid name', 'set: a\ntasks: [{name: "a b"}]', /tasks\.0\.name: must be a name/],
    ['one name twice', 'set: a\ntasks: [{name: a}, {name: a}]', /two are named a/],
    ['an unknown field', 'set: a\ntasks: [{name: a, colour: red}]', /colour is not a task field/],
    [
      'an unknown field of the file',
      'set: a\ntask: []\ntasks: []',
      /^svc: task: unknown field; a file has/,
    ],
    ['a list', '- a', /must be an object/],
  ];
  for (const [what, file, says] of faults) {
    it(`rejects ${what} before any change`, async () => {
      const { code, err } = await call([], file);
      expect(code).to.equal(2);
      expect(err).to.match(says);
    });
  }
});
