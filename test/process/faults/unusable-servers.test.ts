import { expect } from 'chai';
import { join } from 'node:path';
import type { ServerProblemKind } from '../../../domain/server-problem.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import type { FaultEffect } from '../../support/mongodb-server/faults.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import {
  ServiceProcess,
  buildService,
  endsItsProcesses,
  type ServiceSettings,
} from '../../support/service-process.ts';
import { eventually } from '../../support/signals.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';
import { TlsFront } from '../../support/tls-front.ts';
import { svc } from '../../app/cli/command-line.ts';
import { longVersions } from '../../support/left-out.ts';

/** `SVC_TEST_LONG=1`: counts the lines later, and also those of a whole minute. */
const long = longVersions();
/** Failures of loops after which the lines are counted. */
const ENOUGH = long ? 25 : 8;
/** Too long for a host name, so no server is asked for it. */
const impossibleName = `${'a'.repeat(64)}.invalid`;
/** An unused port. */
const nowhere = { SVC_URL: 'http://127.0.0.1:1' };

interface Cause {
  readonly title: string;
  readonly kind: ServerProblemKind;
  /** Of the check in the report of health, and of the doctor's finding. */
  readonly where: { readonly health: string; readonly doctor: string };
  readonly remedy: string;
  /** The setting that differs, once the stand-ins have been told. */
  readonly set: () => ServiceSettings;
}

describe('a service with a server that it cannot use', function () {
  this.timeout(150_000);
  before(() => buildService());
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let log: EventStoreDbServer;
  let views: MongoServer;
  let logFront: TlsFront;
  let viewsFront: TlsFront;
  beforeEach(async () => {
    log = await EventStoreDbServer.start();
    views = await MongoServer.start();
    logFront = await TlsFront.start(log.port);
    viewsFront = await TlsFront.start(Number(views.address.split(':')[1]));
  });
  afterEach(async () => {
    await Promise.all([logFront.stop(), viewsFront.stop()]);
    log.stop();
    await views.stop();
  });

  const settingsWith = (set: ServiceSettings, name = 'data'): ServiceSettings => ({
    SVC_EVENT_STORE_URL: log.url,
    SVC_READ_MODEL_URL: views.url('service'),
    JWT_SECRET_KEY: 'the same for all the processes of the test',
    // Without artifacts, the start does not warn that they are on this machine alone.
    SVC_ARTIFACTS_MAX_BYTES: '0',
    SVC_SECRETS_KEY: 'pQ8vT1mXc5kZr2Lw9sYb4Nf7Hd0JgUaE3iOqVxKzM6A=',
    SVC_DATA_DIR: join(directory(), name),
    ...set,
  });

  const esdb = (url: string): ServiceSettings => ({ SVC_EVENT_STORE_URL: url });
  const mongo = (url: string): ServiceSettings => ({ SVC_READ_MODEL_URL: url });
  const ofLog = { health: 'stream_store', doctor: 'log' };
  const ofViews = { health: 'database', doctor: 'views' };
  const withUsers = (user: string): string => {
    log.access.users = {
      admin: { password: 'changeit', isAdmin: true },
      clerk: { password: 'secret', isAdmin: false },
    };
    const authority = logFront.authority;
    return `esdb://${user}@127.0.0.1:${logFront.port}?tls=true&tlsCAFile=${authority}`;
  };
  const always = (command: string, effect: FaultEffect): void =>
    void views.fault({ command, times: Infinity, effect });
  const refuse = (command: string, code: number, codeName: string): void =>
    always(command, { kind: 'error', code, codeName, message: codeName });

  const causes: readonly Cause[] = [
    {
      title: 'EventStoreDB rejects the password',
      kind: 'user_rejected',
      where: ofLog,
      remedy: 'correct the user or the password in SVC_EVENT_STORE_URL',
      set: () => esdb(withUsers('admin:wrong')),
    },
    {
      title: 'the user of EventStoreDB may not read the whole log',
      kind: 'rights_missing',
      where: ofLog,
      remedy: 'use a member of $admins',
      set: () => esdb(withUsers('clerk:secret')),
    },
    {
      title: "EventStoreDB's authority is not trusted",
      kind: 'certificate_untrusted',
      where: ofLog,
      remedy: 'tlsCAFile',
      set: () => esdb(`esdb://admin:changeit@127.0.0.1:${logFront.port}?tls=true`),
    },
    {
      title: "EventStoreDB's port is plain",
      kind: 'tls_not_offered',
      where: ofLog,
      remedy: 'tls=false',
      set: () => esdb(`esdb://admin:changeit@127.0.0.1:${log.port}?tls=true`),
    },
    {
      title: "EventStoreDB's port requires TLS",
      kind: 'tls_required',
      where: ofLog,
      remedy: 'tls=true',
      set: () => esdb(`esdb://127.0.0.1:${logFront.port}?tls=false`),
    },
    {
      title: 'EventStoreDB is not running',
      kind: 'connection_refused',
      where: ofLog,
      remedy: 'start EventStoreDB',
      set: () => esdb('esdb://127.0.0.1:1?tls=false'),
    },
    {
      title: 'the name of EventStoreDB is unknown',
      kind: 'name_unknown',
      where: ofLog,
      remedy: 'DNS',
      set: () => esdb(`esdb://${impossibleName}:2113?tls=false`),
    },
    {
      title: 'MongoDB rejects the password',
      kind: 'user_rejected',
      where: ofViews,
      remedy: 'correct the user or the password in SVC_READ_MODEL_URL',
      set: () => {
        refuse('saslStart', 18, 'AuthenticationFailed');
        return mongo(`mongodb://svc:wrong@${views.address}/service`);
      },
    },
    {
      title: 'the user of MongoDB lacks readWrite',
      kind: 'rights_missing',
      where: ofViews,
      remedy: 'give it the role readWrite on the database service',
      set: () => {
        const payload = { ok: 1, conversationId: 1, done: true, payload: '' };
        always('saslStart', { kind: 'answer', reply: payload });
        const resource = { db: 'service', collection: '' };
        const authInfo = {
          authenticatedUsers: [{ user: 'svc', db: 'admin' }],
          authenticatedUserPrivileges: [{ resource, actions: ['find', 'listCollections'] }],
        };
        always('connectionStatus', { kind: 'answer', reply: { ok: 1, authInfo } });
        for (const command of ['insert', 'update', 'delete', 'findAndModify', 'createIndexes']) {
          refuse(command, 13, 'Unauthorized');
        }
        return mongo(`mongodb://svc:secret@${views.address}/service?authMechanism=PLAIN`);
      },
    },
    {
      title: "MongoDB's authority is not trusted",
      kind: 'certificate_untrusted',
      where: ofViews,
      remedy: 'tlsCAFile',
      set: () => mongo(`mongodb://127.0.0.1:${viewsFront.port}/service?tls=true`),
    },
    {
      title: "MongoDB's port is plain",
      kind: 'tls_not_offered',
      where: ofViews,
      remedy: 'tls=false',
      set: () => mongo(`${views.url('service')}?tls=true`),
    },
    {
      title: "MongoDB's port requires TLS",
      kind: 'tls_required',
      where: ofViews,
      remedy: 'tls=true',
      set: () => mongo(`mongodb://127.0.0.1:${viewsFront.port}/service`),
    },
    {
      title: 'MongoDB is not running',
      kind: 'connection_refused',
      where: ofViews,
      remedy: 'start MongoDB',
      set: () => mongo('mongodb://127.0.0.1:1/service'),
    },
    {
      title: 'the name of MongoDB is unknown',
      kind: 'name_unknown',
      where: ofViews,
      remedy: 'DNS',
      set: () => mongo(`mongodb://${impossibleName}:27017/service`),
    },
    {
      title: 'the replica set has no primary',
      kind: 'no_primary',
      where: ofViews,
      remedy: 'majority',
      set: () => {
        const secondary = {
          ...{ ok: 1, helloOk: true, isWritablePrimary: false, secondary: true, setName: 'set' },
          ...{ setVersion: 1, hosts: [views.address], me: views.address, maxWireVersion: 21 },
          ...{ minWireVersion: 0, maxBsonObjectSize: 16_777_216, maxWriteBatchSize: 100_000 },
          ...{ maxMessageSizeBytes: 48_000_000, logicalSessionTimeoutMinutes: 30 },
        };
        for (const command of ['hello', 'isMaster', 'ismaster']) {
          always(command, { kind: 'answer', reply: secondary });
        }
        return mongo(`${views.url('service')}?replicaSet=set`);
      },
    },
  ];

  type Line = Readonly<Record<string, unknown>>;
  const isTrouble = ({ level }: Line): boolean => level === 'warn' || level === 'error';
  const hasStack = (line: Line): boolean => JSON.stringify(line).includes('"stack"');

  for (const { title, kind, where, remedy, set } of causes) {
    it(`writes one line, and health and the doctor say what to do: ${title}`, async () => {
      const settings = settingsWith(set());
      const service = ServiceProcess.begin({ ...settings, SVC_LOG_LEVEL: 'debug' });
      const lasting = !['connection_refused', 'name_unknown', 'no_primary'].includes(kind);
      await service.listening();
      await eventually(
        () => {
          if (lasting) expect(service.output).to.match(/^Not usable: .*\nWhat to do: /m);
          const failed = service.log.filter((line) => line['level'] === 'debug' && hasStack(line));
          if (failed.length < ENOUGH) throw new Error(`${failed.length} failures`);
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
    it('writes one line a minute, tries rarely, and says when it works again', async () => {
      const settings = settingsWith(esdb(withUsers('admin:wrong')));
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
      // Each of the process's two connections tries three times in the first minute; some calls are under way at once.
      expect(log.access.rejected).to.be.lessThan(60);
      log.access.users = { admin: { password: 'wrong', isAdmin: true } };
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
