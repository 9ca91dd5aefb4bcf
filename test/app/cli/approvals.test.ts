import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';
import { waitingRun } from '../../api/endpoints/runs/waiting-run.ts';
import { svc, type Called } from './command-line.ts';

describe('svc approvals', () => {
  const api = useRunningApi();
  const call = (...words: readonly string[]): Promise<Called> =>
    svc(words, { env: { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' } });
  const asked = () => waitingRun(api(), { kind: 'approval', message: 'Pay?', on_timeout: 'fail' });

  it('lists, approves and rejects', async () => {
    expect((await call('approvals', 'list')).out).to.equal('no approvals\n');
    const one = await asked();
    const other = await asked();
    expect((await call('approvals', 'approve', one.wait, '--comment', 'fine')).out).to.equal(
      'the step is approved\n',
    );
    expect((await call('approvals', 'reject', other.wait)).out).to.equal('the step is rejected\n');
    const late = await call('approvals', 'reject', one.wait);
    expect(late.code).to.equal(5);
    expect(late.err).to.contain('the step no longer waits: an agent decided at');
    const listed = await call('approvals', 'list', '--state', 'approved', '--run', one.run);
    expect(listed.out).to.match(new RegExp(`\n${one.wait} +approved +pay +Pay\\? .* fine`));
    const { json } = await call('approvals', 'list', '--state', 'rejected', '--json');
    expect(json).to.have.nested.property('items[0].id', other.wait);
  });
});
