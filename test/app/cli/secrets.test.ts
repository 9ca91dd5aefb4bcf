import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

describe('svc secrets', () => {
  const api = useRunningApi();
  const call = (words: readonly string[], input?: string): Promise<Called> =>
    svc(['secrets', ...words], {
      env: { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' },
      ...(input === undefined ? {} : { input }),
    });

  it('sets a secret from standard input, and shows it without its value', async () => {
    const words = ['set', 'TOKEN', '--host', 'a.example', '--host', 'b.example:443'];
    const made = await call(words, 'hush-hush\n');
    expect(made).to.include({ code: 0, err: '' });
    expect(made.out).to.match(/^name +TOKEN\nnamespace +default\nversion +1\nhosts +a\.example b/);
    expect(made.out).not.to.include('hush');
  });

  it('rejects an empty value', async () => {
    const made = await call(['set', 'EMPTY'], '\n');
    expect(made.code).to.equal(2);
    expect(made.err).to.include('standard input is empty');
  });

  it('lists and deletes secrets, of the named namespace', async () => {
    await api().admin.client.post('/namespaces', { name: 'team-a' });
    await call(['set', 'THEIRS', '--namespace', 'team-a'], 'hush-hush');
    const listed = await call(['list', '--namespace', 'team-a']);
    expect(listed.out)
      .to.match(/^NAME +NAMESPACE +VERSION/)
      .and.to.match(/THEIRS +team-a +1 +\(none\)/);
    expect(listed.out).not.to.include('TOKEN');
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
