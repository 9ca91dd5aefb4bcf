import type { ServerProblemKind } from '../../domain/server-problem.ts';
import { EventStoreDbServer } from './eventstoredb-server/server.ts';
import type { FaultEffect } from './mongodb-server/faults.ts';
import { MongoServer } from './mongodb-server/server.ts';
import { TlsFront } from './tls-front.ts';

/** Too long for a host name, so no name server is queried. */
const impossibleName = `${'a'.repeat(64)}.invalid`;

/** Settings as environment variables. */
type Settings = Readonly<Record<string, string>>;

/** Both servers, and a port with TLS in front of each. */
export interface Servers {
  readonly log: EventStoreDbServer;
  readonly views: MongoServer;
  readonly logFront: TlsFront;
  readonly viewsFront: TlsFront;
}

export async function startServers(): Promise<Servers> {
  const log = await EventStoreDbServer.start();
  const views = await MongoServer.start();
  const logFront = await TlsFront.start(log.port);
  const viewsFront = await TlsFront.start(Number(views.address.split(':')[1]));
  return { log, views, logFront, viewsFront };
}

export async function stopServers({ log, views, logFront, viewsFront }: Servers): Promise<void> {
  await Promise.all([logFront.stop(), viewsFront.stop()]);
  log.stop();
  await views.stop();
}

/** The settings with which both servers can be used. */
export const settingsOf = ({ log, views }: Servers): Settings => ({
  SVC_EVENT_STORE_URL: log.url,
  SVC_READ_MODEL_URL: views.url('service'),
});

/** Why a server cannot be used. */
export interface Cause {
  readonly title: string;
  readonly kind: ServerProblemKind;
  /** The name of the check in the health report, and of the doctor's finding. */
  readonly where: { readonly health: string; readonly doctor: string };
  readonly remedy: string;
  /** Brings it about. @returns the setting that differs from {@link settingsOf} */
  readonly set: (servers: Servers) => Settings;
}

const esdb = (url: string): Settings => ({ SVC_EVENT_STORE_URL: url });
const mongo = (url: string): Settings => ({ SVC_READ_MODEL_URL: url });
const ofLog = { health: 'stream_store', doctor: 'log' };
const ofViews = { health: 'database', doctor: 'views' };

/** Gives EventStoreDB an administrator and another user. @returns its URL for a user */
export function withUsers({ log, logFront }: Servers, user: string): string {
  log.access.users = {
    admin: { password: 'changeit', isAdmin: true },
    clerk: { password: 'secret', isAdmin: false },
  };
  const authority = logFront.authority;
  return `esdb://${user}@127.0.0.1:${logFront.port}?tls=true&tlsCAFile=${authority}`;
}

function always({ views }: Servers, command: string, effect: FaultEffect): void {
  views.fault({ command, times: Infinity, effect });
}

function refuse(servers: Servers, command: string, code: number, codeName: string): void {
  always(servers, command, { kind: 'error', code, codeName, message: codeName });
}

/** Each cause at each server. */
export const causes: readonly Cause[] = [
  {
    title: 'EventStoreDB rejects the password',
    kind: 'user_rejected',
    where: ofLog,
    remedy: 'correct the user or the password in SVC_EVENT_STORE_URL',
    set: (servers) => esdb(withUsers(servers, 'admin:wrong')),
  },
  {
    title: 'the user of EventStoreDB may not read the whole log',
    kind: 'rights_missing',
    where: ofLog,
    remedy: 'use a member of $admins',
    set: (servers) => esdb(withUsers(servers, 'clerk:secret')),
  },
  {
    title: "EventStoreDB's authority is not trusted",
    kind: 'certificate_untrusted',
    where: ofLog,
    remedy: 'tlsCAFile',
    set: ({ logFront }) => esdb(`esdb://admin:changeit@127.0.0.1:${logFront.port}?tls=true`),
  },
  {
    title: "EventStoreDB's port is plain",
    kind: 'tls_not_offered',
    where: ofLog,
    remedy: 'tls=false',
    set: ({ log }) => esdb(`esdb://admin:changeit@127.0.0.1:${log.port}?tls=true`),
  },
  {
    title: "EventStoreDB's port requires TLS",
    kind: 'tls_required',
    where: ofLog,
    remedy: 'tls=true',
    set: ({ logFront }) => esdb(`esdb://127.0.0.1:${logFront.port}?tls=false`),
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
    set: (servers) => {
      const { views } = servers;
      refuse(servers, 'saslStart', 18, 'AuthenticationFailed');
      return mongo(`mongodb://svc:wrong@${views.address}/service`);
    },
  },
  {
    title: 'the user of MongoDB lacks readWrite',
    kind: 'rights_missing',
    where: ofViews,
    remedy: 'give it the role readWrite on the database service',
    set: (servers) => {
      const { views } = servers;
      const payload = { ok: 1, conversationId: 1, done: true, payload: '' };
      always(servers, 'saslStart', { kind: 'answer', reply: payload });
      const resource = { db: 'service', collection: '' };
      const authInfo = {
        authenticatedUsers: [{ user: 'svc', db: 'admin' }],
        authenticatedUserPrivileges: [{ resource, actions: ['find', 'listCollections'] }],
      };
      always(servers, 'connectionStatus', { kind: 'answer', reply: { ok: 1, authInfo } });
      for (const command of ['insert', 'update', 'delete', 'findAndModify', 'createIndexes']) {
        refuse(servers, command, 13, 'Unauthorized');
      }
      return mongo(`mongodb://svc:secret@${views.address}/service?authMechanism=PLAIN`);
    },
  },
  {
    title: "MongoDB's authority is not trusted",
    kind: 'certificate_untrusted',
    where: ofViews,
    remedy: 'tlsCAFile',
    set: ({ viewsFront }) => mongo(`mongodb://127.0.0.1:${viewsFront.port}/service?tls=true`),
  },
  {
    title: "MongoDB's port is plain",
    kind: 'tls_not_offered',
    where: ofViews,
    remedy: 'tls=false',
    set: ({ views }) => mongo(`${views.url('service')}?tls=true`),
  },
  {
    title: "MongoDB's port requires TLS",
    kind: 'tls_required',
    where: ofViews,
    remedy: 'tls=true',
    set: ({ viewsFront }) => mongo(`mongodb://127.0.0.1:${viewsFront.port}/service`),
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
    set: (servers) => {
      const { views } = servers;
      const secondary = {
        ok: 1,
        helloOk: true,
        isWritablePrimary: false,
        secondary: true,
        setName: 'set',
        setVersion: 1,
        hosts: [views.address],
        me: views.address,
        maxWireVersion: 21,
        minWireVersion: 0,
        maxBsonObjectSize: 16_777_216,
        maxWriteBatchSize: 100_000,
        maxMessageSizeBytes: 48_000_000,
        logicalSessionTimeoutMinutes: 30,
      };
      for (const command of ['hello', 'isMaster', 'ismaster']) {
        always(servers, command, { kind: 'answer', reply: secondary });
      }
      return mongo(`${views.url('service')}?replicaSet=set`);
    },
  },
];
