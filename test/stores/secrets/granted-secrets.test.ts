import { expect } from 'chai';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { SecretError, LayeredSecrets } from '../../../domain/secrets/secret-source.ts';
import {
  GrantedSecrets,
  readSecretFile,
  type SecretGrants,
} from '../../../stores/secrets/granted-secrets.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { plainSecrets, rejection } from '../../support/test-secrets.ts';

const grants = (more: Partial<SecretGrants> = {}): SecretGrants => ({
  namespaces: new Map([
    ['OURS', ['team-a', 'team-b']],
    ['ALL', ['*']],
  ]),
  hosts: new Map([['OURS', ['api.example.com']]]),
  grantsDefault: true,
  ...more,
});

describe('a secret of the environment', () => {
  const values: Readonly<Record<string, string>> = { OURS: 'a', ALL: 'b', PLAIN: 'c' };
  const secretsWith = (given: SecretGrants): GrantedSecrets =>
    new GrantedSecrets('environment', (name) => values[name], given);
  const refused = async (secrets: GrantedSecrets, namespace: string, name: string) =>
    (await rejection(secrets.find(namespace, name))).message;

  it('belongs to the namespaces of its grant', async () => {
    const secrets = secretsWith(grants());
    for (const namespace of ['team-a', 'team-b']) {
      expect(await secrets.find(namespace, 'OURS')).to.deep.include({ value: 'a', version: null });
    }
    expect(await secrets.find('anyone', 'ALL')).to.include({ value: 'b' });
    expect(await refused(secrets, 'default', 'OURS')).to.equal(
      'the namespace default may not use the secret OURS of this machine: ' +
        'grant it with SVC_SECRET_GRANTS=OURS=default',
    );
  });

  it('belongs to default without a grant, but not in production', async () => {
    expect(await secretsWith(grants()).find('default', 'PLAIN')).to.include({ value: 'c' });
    expect(await refused(secretsWith(grants()), 'team-a', 'PLAIN')).to.include('SVC_SECRET_GRANTS');
    const production = secretsWith(grants({ grantsDefault: false }));
    expect(await refused(production, 'default', 'PLAIN')).to.include(
      'SVC_SECRET_GRANTS=PLAIN=default',
    );
  });

  it('may be sent only where SVC_SECRET_HOSTS says', async () => {
    const secrets = secretsWith(grants());
    expect((await secrets.find('team-a', 'OURS'))?.allowHosts).to.deep.equal(['api.example.com']);
    const plain = await secrets.find('default', 'PLAIN');
    expect(plain?.allowHosts).to.deep.equal([]);
    expect(plain?.hostsRemedy).to.include('SVC_SECRET_HOSTS, such as PLAIN=');
  });

  it('yields to an earlier backend, and to a later one if it is refused', async () => {
    const secrets = secretsWith(grants());
    const before = new LayeredSecrets([plainSecrets({ OURS: 'z' }), secrets]);
    expect(await before.find('team-a', 'OURS')).to.include({ value: 'z' });
    const behind = new LayeredSecrets([secrets, plainSecrets({ OURS: 'z' })]);
    expect(await behind.find('default', 'OURS')).to.include({ value: 'z' });
    const alone = new LayeredSecrets([secrets, plainSecrets({})]);
    expect(await rejection(alone.find('default', 'OURS'))).to.be.instanceOf(SecretError);
  });
});

describe('a secret in a file', () => {
  const directory = useTemporaryDirectory();
  const secretsIn = (): GrantedSecrets =>
    new GrantedSecrets('files', readSecretFile(directory()), grants());

  it('is read at each use, without its final line break', async () => {
    const path = join(directory(), 'PLAIN');
    writeFileSync(path, 'first\n');
    expect(await secretsIn().find('default', 'PLAIN')).to.include({ value: 'first' });
    writeFileSync(path, 'second');
    expect(await secretsIn().find('default', 'PLAIN')).to.include({ value: 'second' });
    expect(await secretsIn().find('default', 'OTHER')).to.equal(undefined);
  });

  it('is never read from outside the folder', async () => {
    writeFileSync(join(directory(), '..', 'outside'), 'hush');
    for (const name of ['../outside', '..', '.', '/etc/hostname', 'a/b']) {
      expect(await secretsIn().find('default', name)).to.equal(undefined);
      expect(await new LayeredSecrets([secretsIn()]).find('default', name)).to.equal(undefined);
    }
  });

  it('that cannot be read is named', async () => {
    mkdirSync(join(directory(), 'FOLDER'), { recursive: true });
    const error = await rejection(secretsIn().find('default', 'FOLDER'));
    expect(error.message).to.match(/^the secret FOLDER cannot be read: .*\(EISDIR\)$/);
  });
});
