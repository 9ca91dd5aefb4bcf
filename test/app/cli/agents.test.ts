import { expect } from 'chai';
import { useRunningApi } from '../../support/running-api.ts';
import { svc, type Called } from './command-line.ts';

describe('the command line for agents and their keys', () => {
  const api = useRunningApi();
  const call = (...words: readonly string[]): Promise<Called> =>
    svc(words, { env: { SVC_URL: api().url, SVC_TOKEN: api().admin.client.token ?? '' } });

  it('disables an agent and enables it again', async () => {
    const { id } = await api().signIn(['tasks:read'], 'weaver');
    const disabled = await call('agents', 'disable', id, '--runs', 'cancel');
    expect(disabled.code, disabled.err).to.equal(0);
    expect(disabled.out).to.match(/disabled +since .*, by .*; its runs are canceled\n/);
    expect((await call('agents', 'list')).out).to.match(/DISABLED[^]*weaver.* \d/);
    expect((await call('agents', 'disable', id, '--runs', 'some')).code).to.equal(2);
    const enabled = await call('agents', 'enable', id, '--missed', 'latest', '--json');
    expect(enabled.json['disabled']).to.equal(null);
    expect((await call('agents', 'disable', api().admin.id)).code).to.equal(5);
  });

  it('creates, lists and revokes keys', async () => {
    const { id } = await api().signIn(['tasks:read']);
    expect((await call('keys', 'list', id)).out).to.equal('no keys\n');
    const made = await call('keys', 'create', id, 'deploy', '--scope', 'tasks:read');
    expect(made.code, made.err).to.equal(0);
    const key = /key +(svck_\S+)/.exec(made.out)?.[1] ?? '';
    expect((await api().admin.client.as(key).get('/tasks')).status).to.equal(200);
    const listed = await call('keys', 'list', id);
    expect(listed.out).to.match(/deploy +tasks:read .* never/);
    expect(listed.out).to.not.contain(key);
    const keyId = /id +(\S+)/.exec(made.out)?.[1] ?? '';
    expect((await call('keys', 'revoke', id, keyId)).code).to.equal(0);
    expect((await api().admin.client.as(key).get('/tasks')).status).to.equal(401);
    expect((await call('keys', 'create', id, 'x', '--scope', 'admin')).code).to.equal(2);
  });
});
