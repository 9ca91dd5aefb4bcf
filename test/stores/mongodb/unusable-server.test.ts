import { expect } from 'chai';
import {
  serverProblemOf,
  type ServerProblemKind,
  type UnusableServerError,
} from '../../../domain/server-problem.ts';
import type { ReadModel } from '../../../projections/read-model.ts';
import type { MongoOptions } from '../../../stores/mongodb/connection.ts';
import { openMongoReadModel } from '../../../stores/mongodb/read-model.ts';
import { thingsProjection } from '../../contracts/read-model-things.ts';
import { leavesNothingOpen } from '../../support/leaks.ts';
import { MongoServer } from '../../support/mongodb-server/server.ts';
import { reportingTo } from '../../support/reporting-to.ts';
import { TlsFront } from '../../support/tls-front.ts';

const projection = thingsProjection();
/** Too long for a host name, so no name server is queried. */
const impossibleName = `${'a'.repeat(64)}.invalid`;

/** How often the reason is looked for at most. */
const ATTEMPTS = 3;
/** Short enough for a test. */
const hasty = { serverSelectionTimeoutMs: 400, pingTimeoutMs: 800 };

describe('a MongoDB server that cannot be used', () => {
  let server: MongoServer;
  let front: TlsFront;
  let opened: ReadModel | undefined;
  let lines: { readonly level: string; readonly message: string }[];
  afterEach(async () => {
    await opened?.close();
    opened = undefined;
    await front.stop();
    await server.stop();
  });
  leavesNothingOpen();
  beforeEach(async () => {
    lines = [];
    server = await MongoServer.start();
    front = await TlsFront.start(Number(server.address.split(':')[1]));
  });

  async function open(url: string, times: Partial<MongoOptions> = {}): Promise<ReadModel> {
    const at = (level: string) => (message: string) => void lines.push({ level, message });
    const quiet = (message: string): void =>
      message === 'MongoDB found' ? undefined : at('info')(message);
    const telemetry = reportingTo({ info: quiet, warn: at('warn'), error: at('error') });
    return (opened = await openMongoReadModel({ url, telemetry, ...times }));
  }

  /**
   * The problem of the given kind that makes operations fail, reported once. Repeated, because a busy
   * machine may have no time to find out more than that there was no answer.
   */
  async function problemAt(
    url: string,
    kind: ServerProblemKind,
    act: (readModel: ReadModel) => Promise<unknown> = (readModel) => readModel.ping(),
  ): Promise<UnusableServerError> {
    for (let attempt = 1; ; attempt += 1) {
      lines.length = 0;
      const readModel = await open(url, hasty);
      const error: unknown = await act(readModel).catch((failure: unknown) => failure);
      const problem = serverProblemOf(error);
      if (problem?.kind !== kind && attempt < ATTEMPTS) {
        await readModel.close();
        continue;
      }
      if (problem === null) throw new Error(`no problem of the server: ${String(error)}`);
      const { message, remedy, lasting } = problem;
      expect(problem.kind).to.equal(kind);
      expect(error).to.include({ code: 'UNAVAILABLE', message });
      await Promise.allSettled([act(readModel), act(readModel), readModel.ping()]);
      const line = `${message}. ${remedy.charAt(0).toUpperCase()}${remedy.slice(1)}`;
      expect(lines).to.deep.equal([{ level: lasting ? 'error' : 'warn', message: line }]);
      return problem;
    }
  }

  function refuse(command: string, code: number, codeName: string): void {
    const effect = { kind: 'error', code, codeName, message: `refused (${codeName})` } as const;
    server.fault({ command, times: Infinity, effect });
  }

  it('has rejected the user for a wrong password', async () => {
    refuse('saslStart', 18, 'AuthenticationFailed');
    const found = await problemAt(`mongodb://svc:wrong@${server.address}/`, 'user_rejected');
    expect(found.message).to.include('rejected user `svc`').and.not.include('wrong@');
    expect(found.remedy).to.equal('correct the user or the password in SVC_READ_MODEL_URL');
  });

  it('has rejected the user with the error of Atlas', async () => {
    refuse('saslStart', 8000, 'AtlasError');
    await problemAt(`mongodb://svc:wrong@${server.address}/`, 'user_rejected');
  });

  it('needs a user, but the URL has none', async () => {
    refuse('ping', 13, 'Unauthorized');
    const found = await problemAt(server.url(), 'user_rejected');
    expect(found.remedy).to.equal('add a user and a password to SVC_READ_MODEL_URL');
  });

  for (const [code, name] of [
    [13, 'Unauthorized'],
    [8000, 'AtlasError'],
  ] as const) {
    it(`does not let the user write: ${name}`, async () => {
      server.fault({ command: 'saslStart', times: Infinity, effect: signedIn });
      for (const command of ['find', 'insert', 'update', 'createIndexes']) {
        refuse(command, code, name);
      }
      const url = `mongodb://svc:secret@${server.address}/views?authMechanism=PLAIN`;
      const found = await problemAt(url, 'rights_missing', async (readModel) => {
        const failures = await Promise.allSettled([
          readModel.liveGeneration(projection),
          readModel.switchTo(projection, 1),
        ]);
        for (const failure of failures) if (failure.status === 'rejected') throw failure.reason;
      });
      expect(found.message).to.include('user `svc`: it may not read and write the database views');
      expect(found.remedy).to.equal('give it the role readWrite on the database views');
    });
  }

  it('fails a check of rights if the user may only read', async () => {
    server.fault({ command: 'saslStart', times: Infinity, effect: signedIn });
    server.fault({ command: 'connectionStatus', times: Infinity, effect: privileges(['find']) });
    const url = `mongodb://svc:secret@${server.address}/views?authMechanism=PLAIN`;
    const check = (readModel: ReadModel): Promise<void> => readModel.requireRights!();
    await problemAt(url, 'rights_missing', check);
  });

  it('passes a check of rights if the user has them, or if it has no users', async () => {
    await (await open(server.url())).requireRights?.();
    await opened?.close();
    server.fault({ command: 'saslStart', times: Infinity, effect: signedIn });
    const all = ['find', 'insert', 'update', 'remove', 'createIndex', 'dropCollection'];
    server.fault({ command: 'connectionStatus', times: Infinity, effect: privileges(all) });
    const url = `mongodb://svc:secret@${server.address}/views?authMechanism=PLAIN`;
    await (await open(url)).requireRights?.();
    expect(lines).to.deep.equal([]);
  });

  it('has a certificate of an unknown authority', async () => {
    const found = await problemAt(
      `mongodb://127.0.0.1:${front.port}/?tls=true`,
      'certificate_untrusted',
    );
    expect(found.remedy).to.include('tlsCAFile').and.include('SVC_READ_MODEL_URL');
  });

  it('can be used with its authority', async () => {
    const url = `mongodb://127.0.0.1:${front.port}/?tls=true&tlsCAFile=${front.authority}`;
    await (await open(url)).ping();
    expect(lines).to.deep.equal([]);
  });

  it('does not offer TLS on the port', async () => {
    const found = await problemAt(`${server.url()}?tls=true`, 'tls_not_offered');
    expect(found.remedy).to.include('tls=false');
  });

  it('requires TLS on the port', async () => {
    const found = await problemAt(`mongodb://127.0.0.1:${front.port}/`, 'tls_required');
    expect(found.remedy).to.equal('write tls=true in SVC_READ_MODEL_URL');
  });

  it('is not running', async () => {
    await server.stop();
    const found = await problemAt(server.url(), 'connection_refused');
    expect(found.remedy).to.include('start MongoDB');
  });

  it('has an unknown name', async () => {
    const found = await problemAt(`mongodb://${impossibleName}:27017/`, 'name_unknown');
    expect(found.remedy).to.include('DNS');
  });

  it('has no primary', async () => {
    const secondary = {
      ok: 1,
      helloOk: true,
      isWritablePrimary: false,
      secondary: true,
      setName: 'set',
      setVersion: 1,
      hosts: [server.address],
      me: server.address,
      maxWireVersion: 21,
      minWireVersion: 0,
      maxBsonObjectSize: 16_777_216,
      maxMessageSizeBytes: 48_000_000,
      maxWriteBatchSize: 100_000,
      logicalSessionTimeoutMinutes: 30,
    };
    for (const command of ['hello', 'isMaster', 'ismaster']) {
      server.fault({ command, times: Infinity, effect: { kind: 'answer', reply: secondary } });
    }
    const found = await problemAt(`${server.url()}?replicaSet=set`, 'no_primary');
    expect(found.remedy).to.include('majority');
  });
});

/** The end of a sign-in by the mechanism PLAIN, which has one step. */
const signedIn = {
  kind: 'answer',
  reply: { ok: 1, conversationId: 1, done: true, payload: '' },
} as const;

/** The response to `connectionStatus` about a user with these actions. */
function privileges(actions: readonly string[]) {
  const resource = { db: 'views', collection: '' };
  const authInfo = {
    authenticatedUsers: [{ user: 'svc', db: 'admin' }],
    authenticatedUserPrivileges: [{ resource, actions: [...actions] }],
  };
  return { kind: 'answer', reply: { ok: 1, authInfo } } as const;
}
