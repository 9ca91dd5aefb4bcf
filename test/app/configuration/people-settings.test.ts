import { expect } from 'chai';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import {
  ConfigurationError,
  type Environment,
} from '../../../app/configuration/setting-readers.ts';

const claims = '[{"claim":"groups","is":"operators","scopes":["runs:read"]}]';
const given = {
  SVC_OIDC_ISSUER: 'https://login.example/realms/main/',
  SVC_OIDC_CLIENT_ID: 'tasks',
  SVC_OIDC_CLAIMS: claims,
};
const production = {
  NODE_ENV: 'production',
  JWT_SECRET_KEY: 'Zk3x9Qm7Lw2Rt8Yp5Vn1Bc6Hd4Js0GaE',
  SVC_SECRETS_KEY: 'pQ8vT1mXc5kZr2Lw9sYb4Nf7Hd0JgUaE3iOqVxKzM6A=',
};

function faultOf(env: Environment): string {
  try {
    readConfiguration(env);
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigurationError);
    return (error as ConfigurationError).message;
  }
  return expect.fail('the settings were accepted');
}
const peopleOf = (env: Environment) => readConfiguration({ ...given, ...env }).people;

describe('the settings of OpenID Connect', () => {
  it('are read, with the issuer exactly as written', () => {
    expect(readConfiguration({}).people).to.equal(null);
    expect(peopleOf({ SVC_OIDC_CLIENT_SECRET: 's' })).to.deep.equal({
      issuer: given.SVC_OIDC_ISSUER,
      clientId: 'tasks',
      clientSecret: 's',
      scopes: 'openid profile email',
      rules: [{ claim: ['groups'], is: 'operators', scopes: ['runs:read'], namespace: undefined }],
      audience: undefined,
    });
  });

  it('accept rules with paths, other types of values, namespaces, and for everyone', () => {
    const rules = [
      { claim: ['realm_access', 'roles'], is: 'x', scopes: ['admin'], namespace: 'billing' },
      { claim: 'staff', is: true, scopes: ['tasks:read'] },
      { claim: 'level', is: 3, scopes: ['tasks:read'] },
      { claim: 'hd', scopes: ['tasks:read'] },
      { scopes: ['runs:read'] },
    ];
    const read = peopleOf({ SVC_OIDC_CLAIMS: JSON.stringify(rules) })?.rules ?? [];
    expect(read.map(({ claim, is }) => [claim, is])).to.deep.equal([
      [['realm_access', 'roles'], 'x'],
      [['staff'], true],
      [['level'], 3],
      [['hd'], undefined],
      [undefined, undefined],
    ]);
  });

  const bad: readonly [claims: string, words: RegExp][] = [
    [
      'groups=operators',
      /is "groups=operators", which is not JSON; it must be a JSON list of rules/,
    ],
    ['{}', /is "{}"; it must be a JSON list of rules such as \[\{"claim"/],
    ['[]', /is "\[\]"/],
    ['[1]', /rule 1 is invalid: it is not an object/],
    [
      '[{"claim":"a","scopes":["b"]},{"claims":"a","scopes":["b"]}]',
      /rule 2 .*"claims" is not a field/,
    ],
    ['[{"claim":"","scopes":["b"]}]', /claim must be the name of a claim/],
    ['[{"claim":[],"scopes":["b"]}]', /claim must be the name of a claim/],
    ['[{"claim":"a","is":null,"scopes":["b"]}]', /is must be a string, a number or a boolean/],
    ['[{"is":"a","scopes":["b"]}]', /is needs a claim/],
    ['[{"claim":"a"}]', /scopes must be a list of scopes/],
    ['[{"claim":"a","scopes":[]}]', /scopes must be a list of scopes/],
    ['[{"claim":"a","scopes":["Tasks Read"]}]', /scopes must be a list of scopes/],
    ['[{"claim":"a","scopes":["b"],"namespace":"A b"}]', /namespace must be/],
    ['[{"claim":"a","scopes":["ops"],"namespace":"b"}]', /ops concerns the whole service/],
  ];
  for (const [rules, words] of bad) {
    it(`reject the rules ${rules}`, () => {
      expect(faultOf({ ...given, SVC_OIDC_CLAIMS: rules }))
        .to.match(/^SVC_OIDC_CLAIMS/)
        .and.match(words);
    });
  }

  it('name a missing setting', () => {
    const { SVC_OIDC_CLIENT_ID, SVC_OIDC_CLAIMS, SVC_OIDC_ISSUER } = given;
    expect(faultOf({ SVC_OIDC_CLIENT_ID })).to.equal(
      'SVC_OIDC_ISSUER is not set, but SVC_OIDC_CLIENT_ID is; set both or neither',
    );
    expect(faultOf({ SVC_OIDC_ISSUER, SVC_OIDC_CLAIMS })).to.match(
      /^SVC_OIDC_CLIENT_ID is not set/,
    );
    expect(faultOf({ SVC_OIDC_ISSUER, SVC_OIDC_CLIENT_ID })).to.match(
      /^SVC_OIDC_CLAIMS is not set/,
    );
    expect(faultOf({ ...given, SVC_OIDC_SCOPES: 'profile' })).to.match(
      /^SVC_OIDC_SCOPES lacks openid/,
    );
  });

  it('allow plain HTTP only for this machine, and never in production', () => {
    for (const issuer of [
      'http://127.0.0.1:9000',
      'http://localhost:9000/a',
      'http://[::1]:9000',
    ]) {
      expect(peopleOf({ SVC_OIDC_ISSUER: issuer })?.issuer).to.equal(issuer);
      const fault = faultOf({ ...given, ...production, SVC_OIDC_ISSUER: issuer });
      expect(fault).to.match(/^SVC_OIDC_ISSUER .* it must be an https address, such as/);
    }
    for (const issuer of [
      'http://login.example',
      'http://127.0.0.1.evil.example',
      'login.example',
      'https://a?b',
    ]) {
      expect(faultOf({ ...given, SVC_OIDC_ISSUER: issuer })).to.match(/^SVC_OIDC_ISSUER is /);
    }
  });

  it('need the public address in production, for the redirect back', () => {
    for (const url of [undefined, 'http://tasks.example']) {
      expect(faultOf({ ...given, ...production, SVC_PUBLIC_URL: url })).to.match(
        /^SVC_PUBLIC_URL must be/,
      );
    }
    const env = { ...given, ...production, SVC_PUBLIC_URL: 'https://tasks.example' };
    expect(readConfiguration(env).people).to.not.equal(null);
  });

  it('reject insecure values', () => {
    expect(faultOf({ ...given, SVC_OIDC_AUDIENCE: 'tasks' })).to.match(
      /^SVC_OIDC_AUDIENCE is the id of the client/,
    );
    expect(faultOf({ ...given, SVC_ALLOW_SECRETLESS: 'true' })).to.match(
      /^SVC_ALLOW_SECRETLESS is true/,
    );
  });
});
