import { expect } from 'chai';
import { readConfiguration } from '../../../app/configuration/configuration.ts';
import { clientSettings, settings } from '../../../app/configuration/known-settings.ts';
import { proxyVariables } from '../../../app/configuration/http-settings.ts';
import { traceVariables } from '../../../app/configuration/trace-settings.ts';
import {
  ConfigurationError,
  type Environment,
} from '../../../app/configuration/setting-readers.ts';

const key = 'JzqBWcj8nlGdmgS9MFIm0yYi2Zt4vUxV';

function faultOf(env: Environment): string {
  try {
    readConfiguration(env);
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigurationError);
    return (error as ConfigurationError).message;
  }
  return expect.fail('the settings were accepted');
}

describe('the configuration', () => {
  it('has the documented defaults in an empty environment', () => {
    expect(readConfiguration({})).to.deep.equal({
      production: false,
      port: 8080,
      host: '127.0.0.1',
      tlsCertFile: undefined,
      tlsKeyFile: undefined,
      dataDirectory: './data',
      roles: ['api', 'projector', 'scheduler', 'worker'],
      eventStoreUrl: undefined,
      readModelUrl: undefined,
      workerConcurrency: 64,
      sharing: {
        slotsPerAgent: null,
        slotsPerNamespace: null,
        waitingRunsPerAgent: 100_000,
        waitingRunsPerNamespace: 0,
        liveStreamsPerAgent: 1_000,
        connectionsPerAddress: 1_000,
        unauthenticatedConnections: 10_000,
      },
      quotas: undefined,
      jobLeaseSeconds: 30,
      jobHeartbeatSeconds: 10,
      maxCausationDepth: 32,
      logLevel: 'info',
      trustProxy: 0,
      maxBodyBytes: 1_048_576,
      corsOrigins: undefined,
      publicUrl: undefined,
      rateLimit: 10_000,
      rateLimitWindowSeconds: 60,
      leaseSeconds: 30,
      accessTokenSeconds: 3_600,
      refreshTokenSeconds: 2_592_000,
      pageSessionSeconds: 43_200,
      people: null,
      adminId: undefined,
      adminSecret: undefined,
      allowSecretless: false,
      auditReads: false,
      http: { allowPrivate: false, proxies: { http: null, https: null, except: [] } },
      jwtSecretKey: undefined,
      jwtPreviousSecretKey: undefined,
      webhookKey: undefined,
      extPlugins: 'all',
      extGrants: undefined,
      extensionSeconds: 30,
      extPaths: undefined,
      extensionSettings: {},
      requireScopes: false,
      webuiRequireAuth: false,
      secrets: {
        keys: undefined,
        directory: undefined,
        vault: undefined,
        grants: { namespaces: new Map(), hosts: new Map(), grantsDefault: true },
      },
      artifacts: { maxBytes: 16_777_216, s3: undefined },
      retainRunsDays: 0,
      retainDeliveriesDays: 0,
      retainSessionsDays: 0,
      retainRefusalsDays: 0,
      retainRequestsDays: 0,
      traces: null,
      warnings: [],
    });
  });

  it('treats an empty value as not set', () => {
    const empty = Object.fromEntries(settings.map((name) => [name, '']));
    expect(readConfiguration(empty)).to.deep.equal(readConfiguration({}));
  });

  it('reads the given settings', () => {
    const configuration = readConfiguration({
      NODE_ENV: 'production',
      SVC_PORT: '0',
      SVC_HOST: '0.0.0.0',
      SVC_DATA_DIR: '/var/lib/svc',
      SVC_ROLES: 'worker, api',
      SVC_EVENT_STORE_URL: 'esdb://user:pa%3Ass@store:2113?tls=false',
      SVC_READ_MODEL_URL: 'mongodb://a,b/svc?replicaSet=rs',
      SVC_TRUST_PROXY: 'loopback, 192.0.2.0/24',
      SVC_CORS_ORIGINS: 'https://app.example, http://localhost:3000',
      SVC_RATE_LIMIT: '0',
      SVC_ADMIN_ID: '018F0000-0000-7000-8000-00000000000A',
      SVC_ADMIN_SECRET: 's'.repeat(16),
      SVC_AUDIT_READS: 'true',
      SVC_HTTP_ALLOW_PRIVATE: 'true',
      SVC_EXT_PATHS: '/opt/one: /opt/two',
      SVC_EXT_PLUGINS: 'one, @scope/two',
      SVC_EXT_GRANTS: '{"one": ["ROUTES"], "two": []}',
      SVC_EXT_ONE_COLOUR: 'red',
      SVC_EXTENSION_SECONDS: '5',
      SVC_REQUIRE_SCOPES: 'true',
      SVC_ARTIFACTS_MAX_BYTES: '0',
      SVC_RETAIN_RUNS_DAYS: '90',
      JWT_SECRET_KEY: key,
      JWT_PREVIOUS_SECRET_KEY: key,
      SVC_SECRETS_KEY: Buffer.from(key.slice(0, 31) + '!').toString('base64'),
    });
    expect(configuration).to.include({ production: true, port: 0, host: '0.0.0.0' });
    expect(configuration.roles).to.deep.equal(['api', 'worker']);
    expect(configuration.trustProxy).to.deep.equal(['loopback', '192.0.2.0/24']);
    expect(configuration.corsOrigins).to.deep.equal([
      'https://app.example',
      'http://localhost:3000',
    ]);
    expect(configuration).to.include({ rateLimit: 0, extensionSeconds: 5 });
    expect(configuration.adminId).to.equal('018f0000-0000-7000-8000-00000000000a');
    expect(configuration.http.allowPrivate).to.equal(true);
    expect(configuration.jwtSecretKey).to.equal(key);
    expect(configuration.extPaths).to.deep.equal(['/opt/one', '/opt/two']);
    expect(configuration.extPlugins).to.deep.equal(['one', '@scope/two']);
    expect(configuration.extGrants).to.deep.equal({ one: ['ROUTES'], two: [] });
    expect(configuration.extensionSettings).to.deep.equal({ SVC_EXT_ONE_COLOUR: 'red' });
    expect(configuration).to.include({ requireScopes: true, webuiRequireAuth: false });
    expect(configuration).to.include({ retainRunsDays: 90, retainSessionsDays: 0 });
    expect(configuration.auditReads).to.equal(true);
    expect(configuration.warnings).to.deep.equal([]);
  });

  const bad: readonly (readonly [env: Environment, says: RegExp])[] = [
    [{ SVC_PORT: '65536' }, /^SVC_PORT is "65536"; it must be a whole number from 0 to 65535$/],
    [{ SVC_PORT: 'tcp://10.0.0.1:80' }, /^SVC_PORT is "tcp:/],
    [{ SVC_PORT: '1e3' }, /^SVC_PORT is "1e3"/],
    [{ SVC_WORKER_CONCURRENCY: '0' }, /^SVC_WORKER_CONCURRENCY is "0".* from 1 to 10000$/],
    [{ SVC_SLOTS_PER_AGENT: '0' }, /^SVC_SLOTS_PER_AGENT is "0".* from 1 to 10000$/],
    [{ SVC_QUOTAS: '{' }, /^SVC_QUOTAS is "\{"; it must be a JSON object of namespaces/],
    [{ SVC_QUOTAS: '{"A": {}}' }, /^SVC_QUOTAS names "A"; it must be a namespace, or \*/],
    [{ SVC_QUOTAS: '{"a": {"tasks": -1}}' }, /^SVC_QUOTAS is bad for a: tasks: must be >= 0$/],
    [
      { SVC_QUOTAS: '{"*": {"tsks": 1}}' },
      /^SVC_QUOTAS is bad for \*: tsks: is not a quota; known/,
    ],
    [{ SVC_CONNECTIONS_PER_ADDRESS: 'many' }, /^SVC_CONNECTIONS_PER_ADDRESS is "many"/],
    [{ SVC_MAX_BODY_BYTES: '1MB' }, /^SVC_MAX_BODY_BYTES/],
    [{ SVC_LEASE_SECONDS: '-1' }, /^SVC_LEASE_SECONDS/],
    [{ SVC_ACCESS_TOKEN_SECONDS: '0' }, /^SVC_ACCESS_TOKEN_SECONDS/],
    [{ SVC_REFRESH_TOKEN_SECONDS: '0' }, /^SVC_REFRESH_TOKEN_SECONDS/],
    [{ SVC_ROLES: 'api,wroker' }, /^SVC_ROLES names "wroker"; .*api,projector,scheduler,worker$/],
    [{ SVC_ROLES: ',' }, /^SVC_ROLES names nothing/],
    [
      { SVC_LOG_LEVEL: 'verbose' },
      /^SVC_LOG_LEVEL is "verbose".*debug, info, warn, error or silent$/,
    ],
    [{ SVC_ALLOW_SECRETLESS: 'yes' }, /^SVC_ALLOW_SECRETLESS is "yes"; it must be true or false$/],
    [{ SVC_EXTENSION_SECONDS: '111' }, /^SVC_EXTENSION_SECONDS is "111"/],
    [
      { SVC_MAX_CAUSATION_DEPTH: '0' },
      /^SVC_MAX_CAUSATION_DEPTH is "0"; it must be a whole number from 1 to 1000$/,
    ],
    [{ SVC_MAX_CAUSATION_DEPTH: '1001' }, /^SVC_MAX_CAUSATION_DEPTH is "1001"/],
    [{ SVC_EXT_PLUGINS: 'a,*' }, /^SVC_EXT_PLUGINS names "\*"; it must be names of npm packages/],
    [{ SVC_EXT_PLUGINS: '../x' }, /^SVC_EXT_PLUGINS names "\.\.\/x"/],
    [{ SVC_EXT_GRANTS: '{' }, /^SVC_EXT_GRANTS is "\{"; it must be a JSON object of ids/],
    [{ SVC_EXT_GRANTS: '{"a":["ROOT"]}' }, /^SVC_EXT_GRANTS is/],
    [{ SVC_TRUST_PROXY: 'true' }, /^SVC_TRUST_PROXY is "true"/],
    [{ SVC_CORS_ORIGINS: 'https://app.example/' }, /^SVC_CORS_ORIGINS is "https:.*origins such as/],
    [{ SVC_CORS_ORIGINS: '*,https://app.example' }, /^SVC_CORS_ORIGINS is "\*"/],
    [{ SVC_RATE_LIMIT: '-1' }, /^SVC_RATE_LIMIT is "-1"/],
    [{ SVC_RATE_LIMIT_WINDOW_SECONDS: '0' }, /^SVC_RATE_LIMIT_WINDOW_SECONDS is "0"/],
    [{ SVC_TRUST_PROXY: '10.0.0.0/33' }, /^SVC_TRUST_PROXY is "10.0.0.0\/33"/],
    [{ SVC_TRUST_PROXY: '0.0.0.0/0' }, /^SVC_TRUST_PROXY is "0.0.0.0\/0"/],
    [{ SVC_TRUST_PROXY: '10.0.0.0/8/9' }, /^SVC_TRUST_PROXY is "10.0.0.0\/8\/9"/],
    [{ SVC_ADMIN_ID: 'admin' }, /^SVC_ADMIN_ID is "admin"; it must be a UUID$/],
    [{ SVC_EVENT_STORE_URL: 'http://store' }, /^SVC_EVENT_STORE_URL must begin with esdb:\/\/, /],
    [{ SVC_READ_MODEL_URL: 'mongodb://' }, /^SVC_READ_MODEL_URL names no host/],
    [{ NODE_ENV: 'production' }, /^JWT_SECRET_KEY is not set; with NODE_ENV=production/],
    [{ SVC_EVENT_STORE_URL: 'esdb://s' }, /^JWT_SECRET_KEY is not set; with SVC_EVENT_STORE_URL/],
    [
      { NODE_ENV: 'production', JWT_SECRET_KEY: key, SVC_ALLOW_SECRETLESS: 'true' },
      /^SVC_ALLOW_SECRETLESS is true; in production/,
    ],
  ];
  for (const [env, says] of bad) {
    it(`rejects ${JSON.stringify(env).slice(0, 90)} in one line that names the setting`, () => {
      const message = faultOf(env);
      expect(message).to.match(says);
      expect(message).to.not.include('\n');
    });
  }

  it('never shows a secret in an error', () => {
    const secrets: readonly Environment[] = [
      { JWT_SECRET_KEY: 'hush' },
      { JWT_PREVIOUS_SECRET_KEY: 'hush' },
      { SVC_ADMIN_SECRET: 'hush' },
      { SVC_EVENT_STORE_URL: 'http://user:hush@store' },
      { SVC_EVENT_STORE_URL: 'esdb://user:a:hush@store' },
      { SVC_READ_MODEL_URL: 'mongodb://user:a@hush@store' },
    ];
    for (const env of secrets) {
      const message = faultOf(env);
      expect(message).to.match(new RegExp(`^${Object.keys(env)[0] ?? ''} `));
      expect(message).to.not.include('hush');
    }
  });

  it('allows no npm plugins in production unless they are named', () => {
    const production = {
      NODE_ENV: 'production',
      SVC_SECRETS_KEY: 'SnpxQldjajhubEdkbWdTOU1GSW0weVlpMlp0NHZVeFY=',
      JWT_SECRET_KEY: key,
    };
    expect(readConfiguration(production).extPlugins).to.deep.equal([]);
    const all = { ...production, SVC_EXT_PLUGINS: '*' };
    expect(readConfiguration(all).extPlugins).to.equal('all');
  });

  it('counts the bytes of a key, not its characters', () => {
    expect(readConfiguration({ JWT_SECRET_KEY: 'ü'.repeat(16) }).jwtSecretKey).to.have.lengthOf(16);
    expect(faultOf({ JWT_SECRET_KEY: 'u'.repeat(31) })).to.match(/has 31 bytes/);
  });

  it('warns of unknown names with a similar known one', () => {
    const { warnings } = readConfiguration({ SVC_ROLE: 'api', SVC_NONSENSE: 'x', OTHER: 'y' });
    expect(warnings).to.deep.equal([
      'SVC_NONSENSE is not a setting',
      'SVC_ROLE is not a setting; is SVC_ROLES meant?',
    ]);
  });

  it("reads the service's public address", () => {
    const publicUrl = (text: string) => readConfiguration({ SVC_PUBLIC_URL: text }).publicUrl;
    expect(publicUrl('https://tasks.example/')).to.equal('https://tasks.example');
    expect(publicUrl('http://host:8080/tasks/')).to.equal('http://host:8080/tasks');
    for (const bad of ['5', 'ftp://host', 'https://host/?a=1', 'https://me:pass@host']) {
      expect(faultOf({ SVC_PUBLIC_URL: bad }), bad).to.match(
        /^SVC_PUBLIC_URL .*must be an address/,
      );
    }
  });

  it('does not warn of secrets of tasks, of the command line, and of tests', () => {
    const names = ['SVC_SECRET_MAIL', 'SVC_TEST_LONG', ...clientSettings];
    const set = Object.fromEntries(names.map((name) => [name, 'x']));
    const env = { ...set, SVC_SECRET_HOSTS: 'MAIL=a.example' };
    expect(readConfiguration(env).warnings).to.deep.equal([]);
  });

  it('warns when the log is shared and the views are not', () => {
    const env = { SVC_EVENT_STORE_URL: 'esdb://store', JWT_SECRET_KEY: key };
    expect(readConfiguration(env).warnings.join()).to.match(/without SVC_READ_MODEL_URL/);
  });

  it('knows exactly the names that it reads', () => {
    const read = new Set<string>();
    const env = new Proxy<Record<string, string | undefined>>(
      {},
      {
        get: (_, name) => {
          read.add(String(name));
          return undefined;
        },
      },
    );
    readConfiguration(env);
    const proxies = proxyVariables.flatMap((name) => [name, name.toLowerCase()]);
    const others = ['NODE_ENV', 'JWT_SECRET_KEY', 'JWT_PREVIOUS_SECRET_KEY', ...proxies];
    // Those of traces belong to another standard, and only some are checked.
    const own = [...read].filter((name) => !(traceVariables as readonly string[]).includes(name));
    expect(own.sort()).to.deep.equal([...settings, ...others].sort());
  });
});
