import { expect } from 'chai';
import { DatabaseSync } from '@photostructure/sqlite';
import { chmodSync, cpSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import {
  ServiceProcess,
  credentialsIn,
  endsItsProcesses,
  signIn,
} from '../../support/service-process.ts';
import { eventually, found } from '../../support/signals.ts';
import {
  makeTemporaryDirectory,
  useTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { Ledger } from '../ledger.ts';
import { leaveOut } from '../../support/left-out.ts';
import { requiredProgram } from '../../support/required-program.ts';

/** The capabilities by which root bypasses permissions, as setpriv drops them. */
const withoutOverride = ['bounding-set', 'inh-caps'].map(
  (set) => `--${set}=-dac_override,-dac_read_search`,
);

describe('the start of the service', function () {
  this.timeout(180_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let used: TemporaryDirectory;
  before(async () => {
    used = await makeTemporaryDirectory();
    const service = await ServiceProcess.start({ SVC_DATA_DIR: join(used.path, 'data') });
    expect((await service.terminate()).code).to.equal(0);
  });
  after(() => used.remove());

  const settings = (name = 'data'): Record<string, string> => ({
    SVC_DATA_DIR: join(directory(), name),
  });

  /** The output of a process that does not start, without its log lines. */
  const lines = (service: ServiceProcess): string[] =>
    service.output.split('\n').filter((line) => line !== '' && !line.startsWith('{'));

  /** Fills the data directory with the files of a service that has run before. */
  const startedBefore = (): void =>
    cpSync(join(used.path, 'data'), join(directory(), 'data'), { recursive: true });

  it('fails on a used port, names SVC_PORT, and does not disturb its owner', async () => {
    const first = await ServiceProcess.start(settings());
    const port = new URL(first.address).port;
    const second = ServiceProcess.begin({ ...settings('other'), SVC_PORT: port });
    expect((await second.ended()).code).to.equal(1);
    expect(lines(second)).to.deep.equal([
      `SVC_PORT: 127.0.0.1:${port} is in use by another process`,
    ]);
    // No agent was registered, so the next start will still show the secret.
    expect(existsSync(join(directory(), 'other'))).to.equal(false);
    const { status } = await first.client().get('/health/ready');
    expect(status).to.equal(200);
    expect(first.end).to.equal(undefined);
  });

  const elsewhere = {
    JWT_SECRET_KEY: 'a key of the tokens of these tests',
    SVC_EVENT_STORE_URL: 'esdb://127.0.0.1:1?tls=false',
    SVC_READ_MODEL_URL: 'mongodb://127.0.0.1:1',
  };
  // Errors at each stage of the start. `test/app/configuration` tests more errors in settings.
  const wrong: readonly (readonly [variable: string, value: string, more?: object])[] = [
    ['SVC_PORT', '80a'],
    ['SVC_HOST', 'a b'],
    ['SVC_HOST', '1.2.3.4'],
    ['SVC_HOST', 'nohost.invalid'],
    ['SVC_EVENT_STORE_URL', 'esdb://127.0.0.1:1?tls=perhaps', elsewhere],
    ['SVC_READ_MODEL_URL', 'mongodb://127.0.0.1:65536', elsewhere],
    ['SVC_READ_MODEL_URL', 'mongodb://127.0.0.1/?pace=slow', elsewhere],
    ['JWT_SECRET_KEY', '', { NODE_ENV: 'production' }],
  ];
  it('fails on an invalid setting with one line that names it, and exit code 2', async () => {
    const services = wrong.map(([variable, value, more]) => ({
      variable,
      value,
      service: ServiceProcess.begin({ ...settings(), ...more, [variable]: value }),
    }));
    for (const { variable, value, service } of services) {
      const { code } = await service.ended();
      expect(code, `${variable}=${value}`).to.equal(2);
      expect(lines(service), `${variable}=${value}`).to.have.lengthOf(1);
      expect(lines(service)[0]).to.match(new RegExp(`^${variable} `));
    }
    expect(existsSync(join(directory(), 'data'))).to.equal(false);
  });

  it('fails on a folder that the system cannot create although its parent exists', async function () {
    if (!existsSync('/proc')) leaveOut(this, 'a folder that cannot be made: /proc is missing');
    const refused = ServiceProcess.begin({ SVC_DATA_DIR: '/proc/data' });
    expect((await refused.ended()).code).to.equal(1);
    expect(lines(refused), refused.output).to.have.lengthOf(1);
    expect(lines(refused)[0]).to.include("SVC_DATA_DIR: /proc/data can't be made: ENOENT");
  });

  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    it(`exits gracefully on ${signal} during the start`, async () => {
      const service = ServiceProcess.begin(settings());
      const begun = (): boolean => service.output.includes('generated a signing key');
      await found(() => begun() || service.end, { limitMs: 30_000, what: 'the start to continue' });
      service.signal(signal);
      expect(await service.ended(), service.output).to.deep.equal({ code: 0, signal: null });
      expect(service.output).to.include('"message":"stopped"');
      expect(readdirSync(join(directory(), 'data', 'peers'))).to.deep.equal([]);
    });
  }

  it('creates one admin, whose secret is valid at both, when two processes start with an empty store', async () => {
    const both = [ServiceProcess.begin(settings()), ServiceProcess.begin(settings())];
    await Promise.all(both.map((service) => service.ready()));
    const credentials = credentialsIn(join(directory(), 'data'));
    const shown = both.filter(({ output }) => output.includes(credentials.agent_secret));
    expect(shown).to.have.lengthOf(1);
    for (const service of both) {
      const token = await signIn(service.client(), credentials);
      for (const other of both) {
        const agents = await other.client(token).get('/agents?name_filter=admin');
        expect(agents.list.map(({ id }) => id)).to.deep.equal([credentials.agent_id]);
      }
    }
    const registered = Ledger.read(join(directory(), 'data')).all('AgentRegistered');
    expect(registered).to.have.lengthOf(1);
    expect(readdirSync(join(directory(), 'data')).filter((name) => /draft/.test(name))).to.be.empty;
  });

  it('rejects an event log, views or a coordination store of a newer release by name, and changes nothing', async () => {
    startedBefore();
    for (const file of ['events.sqlite', 'views.db', 'coordination.db']) {
      const path = join(directory(), 'data', file);
      const present = setVersion(path, 99);
      const refused = ServiceProcess.begin(settings());
      expect((await refused.ended()).code, file).to.be.greaterThan(0);
      expect(lines(refused), refused.output).to.have.lengthOf(1);
      expect(lines(refused)[0]).to.include(path).and.to.include('newer release');
      expect(setVersion(path, present), file).to.equal(99);
    }
    await ServiceProcess.start(settings());
  });

  it('fails on a folder that it may not write, names it, and starts once it may', async function () {
    const data = join(directory(), 'data');
    // Permissions do not bind root, so it runs the service without the overriding capabilities.
    const root = process.getuid?.() === 0;
    const wrapper = root ? [requiredProgram(this, 'setpriv'), ...withoutOverride] : [];
    startedBefore();
    chmodSync(data, 0o555);
    for (const name of readdirSync(data)) chmodSync(join(data, name), 0o444);
    const refused = ServiceProcess.begin(settings(), wrapper);
    try {
      expect((await refused.ended()).code, refused.output).to.be.greaterThan(0);
    } finally {
      chmodSync(data, 0o755);
      for (const name of readdirSync(data)) chmodSync(join(data, name), 0o755);
    }
    expect(lines(refused), refused.output).to.have.lengthOf(1);
    expect(lines(refused)[0]).to.include(data);
    const again = await ServiceProcess.start(settings(), wrapper);
    await eventually(async () => {
      const token = await signIn(again.client(), credentialsIn(data));
      return (await again.client(token).get('/tasks')).status === 200;
    });
  });
});

/** Sets a file's schema version, and returns the previous one. */
function setVersion(path: string, version: number): number {
  const database = new DatabaseSync(path);
  try {
    const before = database.prepare('PRAGMA user_version').get() as { user_version: number };
    database.exec(`PRAGMA user_version = ${version}`);
    return before.user_version;
  } finally {
    database.close();
  }
}
