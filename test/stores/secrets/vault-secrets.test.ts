import { expect } from 'chai';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SecretError } from '../../../domain/secrets/secret-source.ts';
import { VaultSecrets, type VaultSettings } from '../../../stores/secrets/vault-secrets.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { realServerAt } from '../../support/left-out.ts';
import { rejection } from '../../support/test-secrets.ts';

interface Asked {
  readonly path: string;
  readonly token: string | undefined;
}

describe('a secret in Vault', () => {
  const directory = useTemporaryDirectory();
  const asked: Asked[] = [];
  let now = 0;
  let server: Server;
  /** Vault's responses by path. */
  let answers: Map<string, { readonly status: number; readonly body?: string }>;
  let settings: VaultSettings;

  const kept = (data: object | null, version = 3): { status: number; body: string } => ({
    status: 200,
    body: JSON.stringify({ data: { data, metadata: { version } } }),
  });
  const secrets = (more: Partial<VaultSettings> = {}): VaultSecrets =>
    new VaultSecrets({ ...settings, ...more }, { now: () => now });

  before(async () => {
    server = createServer((request, response) => {
      const { url = '', headers } = request;
      asked.push({ path: url, token: headers['x-vault-token'] as string | undefined });
      const { status, body } = answers.get(url) ?? { status: 404, body: '{"errors":[]}' };
      response.writeHead(status, status === 307 ? { location: '/elsewhere' } : {}).end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    settings = {
      address: `http://127.0.0.1:${port}`,
      token: 'vault-token',
      tokenFile: undefined,
      mount: 'secret',
      path: '{namespace}/{name}',
    };
  });
  beforeEach(() => {
    asked.length = 0;
    answers = new Map();
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('is read from the path of its namespace, with its limits', async () => {
    const data = { value: 'hush', allow_hosts: 'a.example, b.example:443', allow_tasks: ['t'] };
    answers.set('/v1/secret/data/team-a/TOKEN', kept(data));
    const secret = await secrets().find('team-a', 'TOKEN');
    expect(secret).to.deep.include({ value: 'hush', version: 3, source: 'vault' });
    expect(secret?.allowHosts).to.deep.equal(['a.example', 'b.example:443']);
    expect(secret?.allowTasks).to.deep.equal(['t']);
    expect(asked).to.deep.equal([{ path: '/v1/secret/data/team-a/TOKEN', token: 'vault-token' }]);
  });

  it('may be sent nowhere without allow_hosts', async () => {
    answers.set('/v1/secret/data/default/TOKEN', kept({ value: 'hush' }));
    const secret = await secrets().find('default', 'TOKEN');
    expect(secret).to.deep.include({ allowHosts: [], allowTasks: null });
  });

  it('is under another mount and path, if they are set', async () => {
    answers.set('/v1/kv/team/data/svc/default/x/TOKEN', kept({ value: 'hush' }));
    const moved = secrets({ mount: 'kv/team', path: 'svc/{namespace}/x/{name}' });
    expect(await moved.find('default', 'TOKEN')).to.include({ value: 'hush' });
  });

  it('does not exist if Vault has none, or only a deleted one', async () => {
    answers.set('/v1/secret/data/default/GONE', kept(null));
    expect(await secrets().find('default', 'NONE')).to.equal(undefined);
    expect(await secrets().find('default', 'GONE')).to.equal(undefined);
  });

  it('is kept for half a minute', async () => {
    const vault = secrets();
    answers.set('/v1/secret/data/default/TOKEN', kept({ value: 'first' }));
    await vault.find('default', 'TOKEN');
    answers.set('/v1/secret/data/default/TOKEN', kept({ value: 'second' }));
    expect(await vault.find('default', 'TOKEN')).to.include({ value: 'first' });
    now += 30_000;
    expect(await vault.find('default', 'TOKEN')).to.include({ value: 'second' });
    expect(asked).to.have.lengthOf(2);
  });

  it('is read with the present token in the file', async () => {
    const tokenFile = join(directory(), 'token');
    answers.set('/v1/secret/data/default/TOKEN', kept({ value: 'hush' }));
    for (const token of ['one', 'two']) {
      writeFileSync(tokenFile, `${token}\n`);
      await secrets({ token: undefined, tokenFile }).find('default', 'TOKEN');
    }
    expect(asked.map(({ token }) => token)).to.deep.equal(['one', 'two']);
    const missing = secrets({ token: undefined, tokenFile: `${tokenFile}-gone` });
    const error = await rejection(missing.find('default', 'TOKEN'));
    expect(error.message).to.include('SVC_VAULT_TOKEN_FILE cannot be read (ENOENT)');
  });

  for (const [status, message] of [
    [
      403,
      'Vault answered 403 to the request for the secret TOKEN: its token must be allowed to read secret/data/default/TOKEN',
    ],
    [503, 'Vault answered 503 to the request for the secret TOKEN'],
  ] as const) {
    it(`for which Vault responds with ${status} can be read later`, async () => {
      answers.set('/v1/secret/data/default/TOKEN', { status });
      const error = await rejection(secrets().find('default', 'TOKEN'));
      expect(error).to.be.instanceOf(SecretError).and.to.include({ message, retryable: true });
    });
  }

  it('can be read later while Vault is unavailable', async () => {
    const away = secrets({ address: 'http://127.0.0.1:1' });
    const error = await rejection(away.find('default', 'TOKEN'));
    expect(error).to.include({
      message: 'Vault did not answer the request of the secret TOKEN',
      retryable: true,
    });
  });

  it('is not requested from another server after a redirect', async () => {
    answers.set('/v1/secret/data/default/TOKEN', { status: 307 });
    await rejection(secrets().find('default', 'TOKEN'));
    expect(asked.map(({ path }) => path)).to.deep.equal(['/v1/secret/data/default/TOKEN']);
  });

  it('in an invalid form is named, and no part of it is shown', async () => {
    answers.set('/v1/secret/data/default/A', kept({ password: 'hush' }));
    answers.set('/v1/secret/data/default/B', { status: 200, body: '{"data": hush' });
    answers.set('/v1/secret/data/default/C', kept({ value: 'hush', allow_hosts: 'https://a/' }));
    answers.set('/v1/secret/data/default/D', kept({ value: 'hush', allow_tasks: { t: 1 } }));
    const messages = await Promise.all(
      ['A', 'B', 'C', 'D'].map(
        async (name) => (await rejection(secrets().find('default', name))).message,
      ),
    );
    expect(messages[0]).to.equal(
      'secret/data/default/A in Vault has no field "value" with a string',
    );
    expect(messages[1]).to.equal('Vault returned no JSON for the secret B');
    expect(messages[2]).to.match(/^allow_hosts of secret\/data\/default\/C in Vault: must be \*/);
    expect(messages[3]).to.match(
      /^allow_tasks of secret\/data\/default\/D in Vault must be a list/,
    );
    expect(messages.join()).not.to.include('hush');
  });
});

const address = realServerAt('SVC_TEST_VAULT_ADDR');

if (address !== undefined) {
  describe('a secret in a real Vault', () => {
    it('is written by Vault’s own interface, and read', async () => {
      const token = process.env['SVC_TEST_VAULT_TOKEN'] ?? 'root';
      const path = `${address}/v1/secret/data/svc-test/TOKEN`;
      const body = JSON.stringify({ data: { value: 'hush', allow_hosts: 'a.example' } });
      const headers = { 'x-vault-token': token };
      const written = await fetch(path, { method: 'POST', headers, body });
      expect(written.status).to.equal(200);
      const settings = { address, token, tokenFile: undefined, mount: 'secret' };
      const vault = new VaultSecrets({ ...settings, path: '{namespace}/{name}' }, Date);
      await vault.check();
      const secret = await vault.find('svc-test', 'TOKEN');
      expect(secret).to.deep.include({ value: 'hush', allowHosts: ['a.example'] });
      expect(secret?.version).to.be.at.least(1);
      expect(await vault.find('svc-test', 'OTHER')).to.equal(undefined);
    });
  });
}
