import { expect } from 'chai';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { environmentSecrets } from '../../../app/configuration/secret-settings.ts';
import {
  ConfigurationError,
  type Environment,
} from '../../../app/configuration/setting-readers.ts';

const key = (byte: number): string => Buffer.from([byte, ...new Uint8Array(31)]).toString('base64');
const secretsOf = (env: Environment) => readConfiguration(env).secrets;
const production = { NODE_ENV: 'production', JWT_SECRET_KEY: 'JzqBWcj8nlGdmgS9MFIm0yYi2Zt4vUxV' };

describe('the settings of secrets', () => {
  it('have no key, no grants and no other backend by default', () => {
    expect(secretsOf({})).to.deep.equal({
      keys: undefined,
      directory: undefined,
      grants: { namespaces: new Map(), hosts: new Map(), grantsDefault: true },
      vault: undefined,
    });
  });

  it('give keys separated by white space or commas, with the one that encrypts first', () => {
    const { keys } = secretsOf({ SVC_SECRETS_KEY: `${key(1)}\n${key(2)}, ${key(3)}` });
    expect(keys?.map((each) => each[0])).to.deep.equal([1, 2, 3]);
  });

  it('give namespaces and hosts by the names of secrets', () => {
    const { grants } = secretsOf({
      SVC_SECRET_GRANTS: 'A=default,team-a; B=*;',
      SVC_SECRET_HOSTS: 'A=api.example.com:443,[fd00::1]:8200;B=*',
    });
    expect([...grants.namespaces]).to.deep.equal([
      ['A', ['default', 'team-a']],
      ['B', ['*']],
    ]);
    expect([...grants.hosts]).to.deep.equal([
      ['A', ['api.example.com:443', '[fd00::1]:8200']],
      ['B', ['*']],
    ]);
  });

  it('grant nothing by default in production', () => {
    const { grants } = secretsOf({ ...production, SVC_SECRETS_KEY: key(1) });
    expect(grants.grantsDefault).to.equal(false);
  });

  it('name a Vault', () => {
    const env = { SVC_VAULT_ADDR: 'https://vault.example:8200/', SVC_VAULT_TOKEN_FILE: '/t' };
    expect(secretsOf(env).vault).to.deep.equal({
      address: 'https://vault.example:8200',
      token: undefined,
      tokenFile: '/t',
      mount: 'secret',
      path: '{namespace}/{name}',
    });
    const moved = { ...env, SVC_VAULT_MOUNT: '/kv/', SVC_VAULT_PATH: 'a/{namespace}/{name}/' };
    expect(secretsOf(moved).vault).to.include({ mount: 'kv', path: 'a/{namespace}/{name}' });
  });

  const faults: readonly (readonly [Environment, RegExp])[] = [
    [
      { ...production },
      /^SVC_SECRETS_KEY is not set; with NODE_ENV=production it must be 32 bytes/,
    ],
    [{ SVC_SECRETS_KEY: 'k'.repeat(32) }, /^SVC_SECRETS_KEY must be 32 bytes in Base64/],
    [{ SVC_SECRETS_KEY: `${key(1)} nonsense` }, /\(key 2 of 2\)$/],
    [
      { SVC_SECRETS_KEY: Buffer.alloc(32, 7).toString('base64') },
      /^SVC_SECRETS_KEY has a key of equal bytes/,
    ],
    [{ SVC_SECRET_GRANTS: 'A' }, /^SVC_SECRET_GRANTS has "A"; it must be like NAME=item/],
    [{ SVC_SECRET_GRANTS: 'A=' }, /^SVC_SECRET_GRANTS has "A="/],
    [{ SVC_SECRET_GRANTS: 'A=Team' }, /^SVC_SECRET_GRANTS has "A=Team"/],
    [{ SVC_SECRET_GRANTS: 'A=a;A=b' }, /^SVC_SECRET_GRANTS names A twice/],
    [{ SVC_SECRET_HOSTS: 'A=https://a.example' }, /^SVC_SECRET_HOSTS has "A=https/],
    [{ SVC_VAULT_TOKEN: 't' }, /^SVC_VAULT_ADDR is not set, but SVC_VAULT_TOKEN is/],
    [{ SVC_VAULT_ADDR: 'vault' }, /^SVC_VAULT_ADDR is "vault"/],
    [{ SVC_VAULT_ADDR: 'http://a' }, /^SVC_VAULT_TOKEN is not set; set one of the two/],
    [
      { SVC_VAULT_ADDR: 'http://a', SVC_VAULT_TOKEN: 't', SVC_VAULT_PATH: '{name}' },
      /^SVC_VAULT_PATH is "\{name\}"; it must have \{namespace\}/,
    ],
  ];
  for (const [env, message] of faults) {
    it(`cannot be ${JSON.stringify(env)}`, () => {
      expect(() => readConfiguration(env)).to.throw(ConfigurationError, message);
    });
  }

  it('warn of secrets that no task can send, and in production of those without a grant', () => {
    const env = { SVC_SECRET_A: 'a', SVC_SECRET_B_FILE: '/b', SVC_SECRET_HOSTS: 'A=a.example' };
    expect(environmentSecrets(env)).to.deep.equal(['A', 'B']);
    expect(readConfiguration(env).warnings).to.deep.equal([
      'no task can send SVC_SECRET_B: name the hosts in SVC_SECRET_HOSTS, such as B=api.example.com',
    ]);
    const granted = { ...env, ...production, SVC_SECRETS_KEY: key(1), SVC_SECRET_GRANTS: 'B=*' };
    expect(readConfiguration(granted).warnings).to.include(
      'no namespace may use SVC_SECRET_A: in production, grant it with SVC_SECRET_GRANTS=A=default',
    );
  });
});
