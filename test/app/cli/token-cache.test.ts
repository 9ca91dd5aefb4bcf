import { expect } from 'chai';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Environment } from '../../../app/configuration/setting-readers.ts';
import type { Clock } from '../../../domain/clock.ts';
import { newId } from '../../../domain/ids.ts';
import { useRunningApi } from '../../support/running-api.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { svc, type Called } from './command-line.ts';

describe('a cached token', () => {
  const api = useRunningApi();
  const home = useTemporaryDirectory();
  let env: Environment;
  let id: string;

  beforeEach(async () => {
    const { client } = api().admin;
    id = (await client.post('/agents', { name: newId(Date.now()), scopes: ['tasks:read'] })).textAt(
      'id',
    );
    const agent_secret = 'a secret of sixteen and more';
    await client.post(`/agents/${id}/credentials`, { agent_secret });
    env = { SVC_URL: api().url, SVC_AGENT_ID: id, SVC_AGENT_SECRET: agent_secret, HOME: home() };
  });

  const call = (more: Environment = {}, clock: Clock = api().clock): Promise<Called> =>
    svc(['tasks', 'list'], { env: { ...env, ...more }, clock });
  const folder = (): string => join(home(), '.local', 'state', 'svc');
  const sessions = async (): Promise<number> => {
    const { streams } = await api().store.listStreams({ prefix: 'session-', limit: 200 });
    const firsts = await Promise.all(
      streams.map(async ({ stream }) => (await api().store.readStream(stream, { limit: 1 }))[0]),
    );
    return firsts.filter((event) => event?.type === 'SessionStarted' && event.data.agent_id === id)
      .length;
  };

  it('is used by the next command, from a file for its owner alone', async () => {
    expect((await call()).code).to.equal(0);
    expect((await call()).code).to.equal(0);
    expect(await sessions()).to.equal(1);
    const [file = '', ...others] = readdirSync(folder());
    expect(others).to.deep.equal([]);
    expect(statSync(folder()).mode & 0o777).to.equal(0o700);
    expect(statSync(join(folder(), file)).mode & 0o777).to.equal(0o600);
    expect(readFileSync(join(folder(), file), 'utf8')).not.to.contain(env['SVC_AGENT_SECRET']);
  });

  it('is not used with another secret', async () => {
    await call();
    expect((await call({ SVC_AGENT_SECRET: 'another secret of sixteen' })).code).to.equal(4);
    expect((await call()).code).to.equal(0);
    expect(await sessions()).to.equal(1);
  });

  it('is replaced when it is invalid', async () => {
    await call();
    const [file = ''] = readdirSync(folder());
    const { token } = JSON.parse(readFileSync(join(folder(), file), 'utf8')) as { token: string };
    await api().admin.client.post('/agents/auth/revoke', { token });
    expect((await call()).code).to.equal(0);
    expect((await call()).code).to.equal(0);
    expect(await sessions()).to.equal(2);
  });

  it('is replaced if it expires soon or the file is damaged', async () => {
    await call();
    const hour = 3_600_000;
    const later = Object.create(api().clock) as Clock;
    later.now = () => api().clock.now() + hour;
    expect((await call({}, later)).code).to.equal(0);
    expect(await sessions()).to.equal(2);
    for (const file of readdirSync(folder())) writeFileSync(join(folder(), file), '{');
    expect((await call()).code).to.equal(0);
    expect(await sessions()).to.equal(3);
  });

  it('is not cached without a writable home', async () => {
    const file = join(home(), 'file');
    writeFileSync(file, '');
    for (const more of [{ HOME: '' }, { XDG_STATE_HOME: file }]) {
      expect((await call(more)).code).to.equal(0);
    }
    expect(readdirSync(home())).to.deep.equal(['file']);
    expect(await sessions()).to.equal(2);
  });
});
