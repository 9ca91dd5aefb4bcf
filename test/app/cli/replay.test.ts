import { expect } from 'chai';
import { plainTask } from '../../api/plain-task.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

describe('svc replay of a record', () => {
  const api = useRunningApi();
  let id: string;
  /** Positions before the task's creation, at it, and after its renaming. */
  let positions: readonly [before: string, created: string, renamed: string];

  before(async () => {
    const { client, id: agent } = api().admin;
    const before = await api().store.head();
    id = (await client.post('/tasks', plainTask(agent))).textAt('id');
    const created = await api().store.head();
    await client.put(`/tasks/${id}`, { title: 'renamed', priority: 9 });
    positions = [before, created, await api().store.head()];
  });

  const call = (words: readonly string[], terminal = false): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(['replay', ...words], { env, terminal });
  };

  it('shows the record as of a time', async () => {
    const { json } = await call(['task', id, '--at', positions[1], '--json']);
    expect(json['revision']).to.equal(0);
    expect((await call(['task', id, '--at', positions[1]])).out).to.match(/^revision +0$/m);
    const agent = await call(['agent', api().admin.id, '--at', positions[1], '--json']);
    expect(agent.json['name']).to.equal('admin');
  });

  it('shows the changes until another time', async () => {
    const [, created, renamed] = positions;
    const { out, code } = await call(['task', id, '--at', created, '--and', renamed]);
    expect(code).to.equal(0);
    expect(out).to.match(/^FIELD +AT \w+ +AT \w+\n/);
    expect(out).to.match(/^title +"[^"]+" +"renamed"$/m);
    expect(out).to.match(/^priority +\d +9$/m);
    const { json } = await call(['task', id, '--at', created, '--and', 'now', '--json']);
    const changes = json['changes'] as readonly { path: string; after: unknown }[];
    expect(changes.find(({ path }) => path === 'title')?.after).to.equal('renamed');
    const coloured = await call(['task', id, '--at', created, '--and', renamed], true);
    expect(coloured.out).to.include('\u001b[32m"renamed"');
  });

  it('treats a record that did not exist yet as one without fields', async () => {
    const [early, created] = positions;
    const { json } = await call(['task', id, '--at', early, '--and', created, '--json']);
    expect(json['at']).to.equal(null);
    expect(json['changes']).to.not.be.empty;
  });

  it('rejects missing records and invalid times', async () => {
    const gone = await call(['task', id, '--at', positions[0]]);
    expect([gone.code, gone.err]).to.deep.equal([
      3,
      `svc: there was no task ${id} at ${positions[0]}\n`,
    ]);
    expect(
      (await call(['task', id, '--at', positions[0], '--and', '2020-01-01T00:00Z'])).code,
    ).to.equal(3);
    expect((await call(['task', id, '--at', 'yesterday'])).code).to.equal(2);
    expect((await call(['task', id])).code).to.equal(2);
  });
});

describe('svc replay of whole views', () => {
  const api = useRunningApi();
  let position: string;

  before(async () => {
    const { client, id } = api().admin;
    await client.post('/tasks', plainTask(id));
    position = await api().store.head();
    await client.post('/tasks', plainTask(id));
  });

  const call = (words: readonly string[]): Promise<Called> => {
    const env = { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' };
    return svc(words, { env });
  };

  it('builds them by name, shows the progress, reads and drops them', async () => {
    const made = await call(['replay', '--until', position, '--into', 'early']);
    expect(made.code).to.equal(0);
    expect(made.err).to.match(/^\[[█░]{24}\] +\d+ %/);
    expect(made.out).to.match(/^as of \S+ \S+Z: tasks 1, runs 0, .*; read it with --view early/);
    const past = await call(['tasks', 'list', '--view', 'early', '--json']);
    expect(past.json['total']).to.equal(1);
    expect((await call(['tasks', 'list', '--json'])).json['total']).to.equal(2);
    expect((await call(['stats', '--view', 'early'])).code).to.equal(0);
    expect((await call(['runs', 'list', '--view', 'early'])).out).to.equal('no runs\n');
    expect((await call(['agents', 'list', '--view', 'early'])).out).to.match(/admin/);
    expect((await call(['replay', 'list'])).out).to.match(/^early +\S+ \S+Z +ready +0 /m);
    expect((await call(['replay', 'drop', 'early'])).code).to.equal(0);
    expect((await call(['replay', 'list'])).out).to.equal('no replays\n');
    expect((await call(['runs', 'list', '--view', 'early'])).code).to.equal(3);
  });

  it('is rejected without a time or a name, and for a used name', async () => {
    expect((await call(['replay', '--until', position])).code).to.equal(2);
    expect((await call(['replay', '--until', position, '--into', 'No'])).code).to.equal(2);
    const detached = ['replay', '--until', position, '--into', 'twice', '--detach'];
    expect((await call(detached)).code).to.equal(0);
    expect((await call(detached)).code).to.equal(5);
  });
});
