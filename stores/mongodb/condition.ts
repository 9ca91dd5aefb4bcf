import { readFileSync } from 'node:fs';
import { BSON, type MongoClient } from 'mongodb';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Address } from '../servers/reachability.ts';
import { ServerCondition } from '../servers/server-condition.ts';
import { ServerWords } from '../servers/server-words.ts';

type Authorities = NonNullable<Address['tls']>['ca'];

/** The opcode of messages that all supported servers understand. */
const OP_MSG = 2013;

/** Whether the client's server can be used. @throws Error if the file of authorities cannot be read */
export function mongoCondition(
  client: MongoClient,
  database: string,
  telemetry: Telemetry,
): ServerCondition {
  const { options } = client;
  const words = new ServerWords({
    product: 'MongoDB',
    hosts: options.hosts.map(String).join(',') || (options.srvHost ?? ''),
    user: options.credentials?.username || undefined,
    setting: 'SVC_READ_MODEL_URL',
    // A user needs a single role for everything, so all operations fail for the same cause.
    forbidden: () => `read and write the database ${database}`,
    grant: `give it the role readWrite on the database ${database}`,
    leaderless: 'no_primary',
  });
  // The driver reads the file when it first connects.
  const ca = options.ca ?? (options.tlsCAFile && readFileSync(options.tlsCAFile));
  return new ServerCondition(words, telemetry, () => addressesOf(client, ca));
}

function addressesOf({ options }: MongoClient, ca: Authorities): readonly Address[] {
  const { tls, rejectUnauthorized, checkServerIdentity } = options;
  const trustsAll = rejectUnauthorized === false;
  const security = { ca, trustsAll, anyName: checkServerIdentity !== undefined };
  // No hosts are known before the names of `mongodb+srv` are resolved.
  return options.hosts.flatMap(({ host, port }) =>
    host === undefined || port === undefined
      ? []
      : [{ host, port, tls: tls ? security : null, greeting }],
  );
}

/** The command `hello`, which servers answer before a user has signed in. */
const greeting = ((): Buffer => {
  const body = BSON.serialize({ hello: 1, $db: 'admin' });
  const length = 16 + 4 + 1 + body.length;
  const head = Buffer.alloc(21);
  head.writeInt32LE(length, 0);
  head.writeInt32LE(1, 4);
  head.writeInt32LE(OP_MSG, 12);
  return Buffer.concat([head, body]);
})();
