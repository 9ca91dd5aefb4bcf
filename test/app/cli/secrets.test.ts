import { expect } from 'chai';
import type { Clock } from '../../../domain/clock.ts';
import { plainTask } from '../../api/plain-task.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { svc, type Called } from './command-line.ts';

describe('svc secrets', () => {
  const api = useRunningApi();
  const call = (words: readonly string[], input?: string, clock?: Clock): Promise<Called> =>
    svc(['secrets', ...words], {
      env: { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' },
      ...(input === undefined ? {} : { input }),
      ...(clock === undefined ? {} : { clock }),
    });

  it('sets a secret from standard input, and shows it without its value', async () => {
    const words = ['set', 'TOKEN', '--host', 'a.example', '--host', 'b.example:443'];
    const made = await call(words, 'hush-hush\n');
    expect(made).to.include({ code: 0, err: '' });
    expect(made.out).to.match(/^name +TOKEN\nnamespace +default\nversion +1\nhosts +a\.example b/);
    expect(made.out).to.match(/\nexpires +never\n/);
    expect(made.out).not.to.include('hush');
  });

  it('rejects an empty value', async () => {
    const made = await call(['set', 'EMPTY'], '\n');
    expect(made.code).to.equal(2);
    expect(made.err).to.include('standard input is empty');
  });

  it('sets a secret that expires, and lists what expires by an instant', async () => {
    await call(['set', 'LATER', '--expires', '2090-01-02T00:00:00Z'], 'hush-hush');
    const made = await call(['set', 'SOON', '--expires', '2090-01-01T01:00:00+01:00'], 'hush-hush');
    expect(made.out).to.match(/\nexpires +2090-01-01 00:00:00Z\n/);
    const listed = await call(['list', '--until', '2090-12-31T00:00:00Z']);
    expect(listed.out).to.match(/^NAME .+EXPIRES/);
    expect(listed.out).to.match(
      /\nSOON .+ 2090-01-01 00:00:00Z .+\nLATER .+ 2090-01-02 00:00:00Z /,
    );
    expect(listed.out).not.to.include('TOKEN');
    const past = await call(['set', 'LATE', '--expires', '2020-01-01T00:00:00Z'], 'hush-hush');
    expect(past.code).to.equal(2);
    expect(past.err).to.include('expires_at: must be in the future');
  });

  it('finds the tasks that use a secret', async () => {
    const step = { uses: 'http.request', with: { url: 'http://a/', body: '${secrets.SOON}' } };
    const { id, client } = api().admin;
    const fields = { ...plainTask(id), title: 'Uses it', payload: { pipeline: [step] } };
    expect((await client.post('/tasks', fields)).status).to.equal(201);
    await client.post('/tasks', plainTask(id));
    const env = { SVC_URL: api().url, SVC_TOKEN: client.token ?? '' };
    const { json } = await svc(['tasks', 'list', '--secret', 'SOON', '--json'], { env });
    expect(json['items']).to.have.lengthOf(1);
    expect(json['items']).to.have.nested.property('[0].title', 'Uses it');
  });

  it('marks a secret that has expired', async () => {
    const clock = new VirtualClock(Date.parse('2091-01-01T00:00:00Z'));
    expect((await call(['list'], undefined, clock)).out).to.match(
      /SOON .+ 2090-01-01 00:00:00Z \(expired\)/,
    );
  });

  it('lists and deletes secrets, of the named namespace', async () => {
    await api().admin.client.post('/namespaces', { name: 'team-a' });
    await call(['set', 'THEIRS', '--namespace', 'team-a'], 'hush-hush');
    const listed = await call(['list', '--namespace', 'team-a']);
    expect(listed.out)
      .to.match(/^NAME +NAMESPACE +VERSION/)
      .and.to.match(/THEIRS +team-a +1 +\(none\)/);
    expect(listed.out).not.to.include('TOKEN');
    const shown = await call(['show', 'THEIRS', '--namespace', 'team-a']);
    expect(shown.out).to.match(/^name +THEIRS\nnamespace +team-a\n[^]+\nlast used +never\n$/);
    expect((await call(['show', 'THEIRS'])).code).to.equal(3);
    expect((await call(['delete', 'THEIRS'])).code).not.to.equal(0);
    const gone = await call(['delete', 'THEIRS', '--namespace', 'team-a']);
    expect(gone).to.include({ code: 0, out: 'the secret is deleted\n' });
    expect((await call(['list', '--namespace', 'team-a'])).out).to.equal('no secrets\n');
  });

  it('rotates the key', async () => {
    const rotated = await call(['rotate-key']);
    expect(rotated.out).to.match(/^key +[0-9a-f]{16} \(generated\)\nresealed +\d+\n/);
  });
});
