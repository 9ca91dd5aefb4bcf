import { expect } from 'chai';
import { join } from 'node:path';
import {
  ServiceProcess,
  buildService,
  endsItsProcesses,
  type ServiceSettings,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import {
  causes,
  settingsOf,
  startServers,
  stopServers,
  withUsers,
  type Servers,
} from '../../support/unusable-servers.ts';
import { svc } from '../../app/cli/command-line.ts';
import { longVersions } from '../../support/left-out.ts';

/** `SVC_TEST_LONG=1`: each cause at each server, more failures before the lines are counted, and a test of a minute. */
const long = longVersions();
/** How many failures of loops to wait for before counting the lines. */
const MIN_FAILURES = long ? 25 : 8;
/** An unused port. */
const nowhere = { SVC_URL: 'http://127.0.0.1:1' };

describe('a service with a server that it cannot use', function () {
  this.timeout(150_000);
  before(() => buildService());
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let servers: Servers;
  beforeEach(async () => {
    servers = await startServers();
  });
  afterEach(() => stopServers(servers));

  const settingsWith = (set: ServiceSettings, name = 'data'): ServiceSettings => ({
    ...settingsOf(servers),
    JWT_SECRET_KEY: 'the same for all the processes of the test',
    // Without artifacts, the start does not warn that they are only on this machine.
    SVC_ARTIFACTS_MAX_BYTES: '0',
    SVC_SECRETS_KEY: 'pQ8vT1mXc5kZr2Lw9sYb4Nf7Hd0JgUaE3iOqVxKzM6A=',
    SVC_DATA_DIR: join(directory(), name),
    ...set,
  });

  type Line = Readonly<Record<string, unknown>>;
  const isTrouble = ({ level }: Line): boolean => level === 'warn' || level === 'error';
  const hasStack = (line: Line): boolean => JSON.stringify(line).includes('"stack"');

  // One server for each kind, in turn. `test/app/doctor/unusable-servers.test.ts` tests the remedies at both servers,
  // `test/stores/*/unusable-server.test.ts` each server's own errors.
  const kinds = [...new Set(causes.map(({ kind }) => kind))];
  const shown = causes.filter(({ kind, where }) => {
    const rivals = causes.filter((each) => each.kind === kind);
    const turn = kinds.indexOf(kind) % rivals.length;
    return long || rivals[turn]?.where === where;
  });

  for (const { title, kind, where, remedy, set } of shown) {
    it(`writes one line, and health and the doctor say what to do: ${title}`, async () => {
      const settings = settingsWith(set(servers));
      const service = ServiceProcess.begin({ ...settings, SVC_LOG_LEVEL: 'debug' });
      const lasting = !['connection_refused', 'name_unknown', 'no_primary'].includes(kind);
      await service.listening();
      await eventually(
        () => {
          if (lasting) expect(service.output).to.match(/^Not usable: .*\nWhat to do: /m);
          const failed = service.log.filter((line) => line['level'] === 'debug' && hasStack(line));
          if (failed.length < MIN_FAILURES) throw new Error(`${failed.length} failures`);
          expect(service.log.filter(isTrouble), 'lines').not.to.have.length(0);
        },
        { limitMs: 60_000, what: 'failures' },
      );
      const troubles = service.log.filter(isTrouble);
      const messages = troubles.map(({ message }) => message);
      expect(messages, messages.join('; ')).to.have.length(1);
      const [line = {}] = troubles;
      expect(line).to.include({ cause: kind, recovers_by_itself: !lasting });
      expect(line['level']).to.equal(lasting ? 'error' : 'warn');
      expect(hasStack(line)).to.equal(false);
      expect(String(line['message']).toLowerCase()).to.include(remedy.toLowerCase());

      const { json } = await service.client().get('/health');
      const checks = json['checks'] as readonly Line[];
      const check = checks.find(({ name }) => name === where.health) ?? {};
      expect(check).to.include({ status: 'unhealthy', cause: kind, recovers_by_itself: !lasting });
      expect(check['message']).to.include(remedy);

      const called = await svc(['doctor', '--json', '--quick'], {
        env: { ...settings, ...nowhere },
      });
      const findings = called.json['findings'] as readonly Line[];
      const finding = findings.find((each) => each['check'] === where.doctor) ?? {};
      expect(finding).to.include({ verdict: 'fault' });
      expect(finding['advice']).to.include(remedy);
      await service.kill();
    });
  }

  if (long) {
    it('writes one line a minute, retries rarely, and says when it works again', async () => {
      const settings = settingsWith({ SVC_EVENT_STORE_URL: withUsers(servers, 'admin:wrong') });
      const service = ServiceProcess.begin(settings);
      await service.listening();
      const troubles = (): readonly Line[] => service.log.filter(isTrouble);
      await eventually(() => troubles().length > 0, { limitMs: 20_000 });
      await eventually(() => troubles().length > 1, { limitMs: 90_000 });
      const [first = {}, second = {}] = troubles();
      const between = Date.parse(String(second['time'])) - Date.parse(String(first['time']));
      expect(between).to.be.within(59_000, 75_000);
      expect(second['message']).to.equal(first['message']);
      expect(second['times']).to.be.greaterThan(20);
      // Each of the process's two connections tries three times in the first minute. Some calls are concurrent.
      expect(servers.log.access.rejected).to.be.lessThan(60);
      servers.log.access.users = { admin: { password: 'wrong', isAdmin: true } };
      await service.ready(60_000);
      expect(troubles()).to.have.length(2);
      const over = service.log.filter(({ message }) =>
        String(message).includes('can be used again'),
      );
      expect(over.map(({ level }) => level)).to.deep.equal(['info']);
      await service.terminate();
    });
  }
});
