import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

describe('svc namespaces', () => {
  const api = useRunningApi();
  const call = (...words: readonly string[]): Promise<Called> =>
    svc(['namespaces', ...words], {
      env: { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' },
    });

  it('gives a namespace quotas, replaces them and removes them', async () => {
    const made = await call('create', 'team-a', '--quota', 'tasks=5', '--quota', 'weight=2');
    expect(made).to.include({ code: 0, err: '' });
    expect(made.out)
      .to.match(/^quotas +tasks=5, weight=2$/m)
      .and.to.match(/^at most +tasks=5/m);
    const changed = await call('update', 'team-a', '--quota', 'tasks=7');
    expect(changed.out).to.match(/^quotas +tasks=7$/m);
    const removed = await call('update', 'team-a', '--quota', '', '--json');
    expect(removed.json['quotas']).to.deep.equal({});
  });

  it('rejects a quota that is unknown or not a number', async () => {
    const unknown = await call('update', 'team-a', '--quota', 'cpu=1');
    expect([unknown.code, unknown.err]).to.deep.equal([2, unknown.err]);
    expect(unknown.err).to.match(/cpu is not a quota; known are weight, tasks/);
    expect((await call('update', 'team-a', '--quota', 'tasks=many')).err).to.match(/whole number/);
    expect((await call('update', 'team-a')).err).to.contain('give a --description or a --quota');
  });
});
