import { expect } from 'chai';
import {
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { SystemClock } from '../../../app/clock.ts';
import { readConfiguration, type Configuration } from '../../../app/configuration/configuration.ts';
import { credentialsFile } from '../../../app/starting/credentials-file.ts';
import { makeFirstAdmin, type AdminCredentials } from '../../../app/starting/first-start.ts';
import { verifySecret } from '../../../api/access/secrets.ts';
import { agentFold, requireAgent } from '../../../domain/agents/agent.ts';
import { releaseAgentName } from '../../../domain/agents/agent-registration.ts';
import { load } from '../../../domain/handle.ts';
import { MemoryLog, unavailable } from '../../domain/memory-log.ts';
import { rejection } from '../../domain/given.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the first start', () => {
  const directory = useTemporaryDirectory();
  const clock = new SystemClock();
  let store: MemoryLog;

  beforeEach(() => {
    store = new MemoryLog();
  });

  const configuration = (env = {}): Configuration =>
    readConfiguration({ SVC_DATA_DIR: join(directory(), 'data'), ...env });

  const make = (env = {}): Promise<AdminCredentials | null> =>
    makeFirstAdmin(store, configuration(env), clock);

  const kept = (): AdminCredentials =>
    JSON.parse(
      readFileSync(credentialsFile(configuration().dataDirectory), 'utf8'),
    ) as AdminCredentials;

  const files = (): readonly string[] =>
    existsSync(configuration().dataDirectory) ? readdirSync(configuration().dataDirectory) : [];

  /** Whether a secret belongs to the admin in the log. */
  const opens = async ({ agent_id, agent_secret }: AdminCredentials): Promise<boolean> => {
    const { state } = await load(store, `agent-${agent_id}`, agentFold);
    const { credentials, scopes, name } = requireAgent(state);
    expect({ scopes, name }).to.deep.equal({ scopes: ['admin'], name: 'admin' });
    return verifySecret(agent_secret, credentials?.secret_hash ?? '');
  };

  const dieAt = (n: number): void => {
    const last = store.asked + n;
    store.onAppend = (_append, asked) => {
      if (asked >= last) throw unavailable();
    };
  };

  it('creates the admin and saves its credentials for their owner alone', async () => {
    const made = await make();
    expect(made).to.not.equal(null);
    expect(kept()).to.deep.equal(made);
    expect(await opens(kept())).to.equal(true);
    expect(statSync(credentialsFile(configuration().dataDirectory)).mode & 0o777).to.equal(0o600);
    expect(files()).to.deep.equal(['admin-credentials.json']);
  });

  it('uses the id and secret of the settings', async () => {
    const id = '01950a5e-0000-7000-8000-000000000001';
    const secret = 'a secret of the settings';
    expect(await make({ SVC_ADMIN_ID: id, SVC_ADMIN_SECRET: secret })).to.deep.equal({
      agent_id: id,
      agent_secret: secret,
    });
    expect(await opens({ agent_id: id, agent_secret: secret })).to.equal(true);
  });

  it('happens once, even with many concurrent processes', async () => {
    const made = await Promise.all(Array.from({ length: 5 }, () => make()));
    const [winner, ...others] = made.filter((each) => each !== null);
    expect(others).to.deep.equal([]);
    expect(kept()).to.deep.equal(winner);
    expect(await opens(kept())).to.equal(true);
    expect(files()).to.deep.equal(['admin-credentials.json']);
    expect(await make()).to.equal(null);
  });

  it('creates no other admin when the first is removed', async () => {
    await make();
    const { agent_id } = kept();
    await releaseAgentName(store, { namespace: 'default', name: 'admin' }, agent_id, {
      commandId: 'c',
      actor: 'a',
      source: 's',
      correlationId: 'c',
      now: 0,
    });
    expect(await make()).to.equal(null);
  });

  for (const n of [1, 2]) {
    it(`is completed after a crash at append ${n}`, async () => {
      dieAt(n);
      await rejection(make());
      store.onAppend = () => {};
      const made = await make();
      expect(kept()).to.deep.equal(made);
      expect(await opens(kept())).to.equal(true);
    });
  }

  it('completes the file of a process that died after the append', async () => {
    store.afterAppend = ({ stream }) => {
      if (stream.startsWith('agent-')) throw unavailable();
    };
    await rejection(make());
    expect(files().some((file) => file.endsWith('.draft.json'))).to.equal(true);
    store.afterAppend = () => {};
    // Nobody has seen these credentials yet.
    expect(await make()).to.deep.equal(kept());
    expect(await opens(kept())).to.equal(true);
    expect(await make()).to.equal(null);
  });

  it('reports the credentials once if another process completes the file first', async () => {
    const others: (AdminCredentials | null)[] = [];
    store.afterAppend = async ({ stream }) => {
      if (!stream.startsWith('agent-')) return;
      others.push(...(await Promise.all([make(), make()])));
    };
    const reported = [await make(), ...others].filter((each) => each !== null);
    expect(reported).to.deep.equal([kept()]);
    expect(files()).to.deep.equal(['admin-credentials.json']);
  });

  it('ignores an incomplete draft and removes it later', async () => {
    await make();
    const { dataDirectory } = configuration();
    const fresh = join(dataDirectory, 'admin-credentials.1.draft.json');
    const old = join(dataDirectory, 'admin-credentials.2.draft.json');
    writeFileSync(fresh, '{"agent_id": "');
    writeFileSync(old, '');
    const before = new Date(Date.now() - 120_000);
    utimesSync(old, before, before);
    expect(await make()).to.equal(null);
    expect(existsSync(fresh)).to.equal(true);
    expect(existsSync(old)).to.equal(false);
    expect(await opens(kept())).to.equal(true);
  });

  it('continues for a process that reserved the name and died', async () => {
    let reserved = false;
    store.onAppend = async ({ stream }) => {
      if (reserved || !stream.startsWith('agentname-')) return;
      reserved = true;
      dieAt(2);
      await rejection(make());
      store.onAppend = () => {};
    };
    const made = await make();
    expect(made).to.not.equal(null);
    expect(await opens(kept())).to.equal(true);
  });
});
