import { accessSync, constants } from 'node:fs';
import {
  type ClientSession,
  type Db,
  MongoClient,
  type MongoClientOptions,
  type TopologyDescription,
} from 'mongodb';
import type { UnusableServerError } from '../../domain/server-problem.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { ServerCondition } from '../servers/server-condition.ts';
import { withTimeout } from '../waiting.ts';
import { countCommands } from './command-counts.ts';
import { mongoCondition } from './condition.ts';
import { hasRights } from './rights.ts';
import {
  NoResponseError,
  describeError,
  isDriverError,
  isForbidden,
  isLeaderless,
  isRejectedUser,
  isUnreachable,
  nameProblemOf,
} from './driver-errors.ts';
import { databaseOf, withoutConcerns } from './connection-string.ts';

/** How to reach a MongoDB server, a replica set, or a compatible server. */
export interface MongoOptions {
  /** `mongodb://…` or `mongodb+srv://…`. */
  readonly url: string;
  /** Default: the database in the URL's path, else `svc`. */
  readonly database?: string;

  readonly telemetry: Telemetry;
  /** How long an operation waits for a reachable server, in milliseconds; default 2,000. */
  readonly serverSelectionTimeoutMs?: number;
  /** How long an operation may take, in milliseconds; default 20,000. Index builds have no limit. */
  readonly operationTimeoutMs?: number;
  /** How long `ping` may take, in milliseconds; default 1,900. */
  readonly pingTimeoutMs?: number;
}

/** The kind of server that answered. */
export type Deployment = 'standalone' | 'replica-set' | 'sharded';

/** Builds an adapter's own error from a message and the driver's error. */
export type FailureOf = (message: string, cause: unknown) => Error;

/**
 * One client, shared by all adapters with the same options. It opens without a server. Each operation waits briefly for
 * one, so the adapters recover by themselves.
 */
export class MongoConnection {
  readonly #client: MongoClient;
  readonly #db: Db;
  readonly #telemetry: Telemetry;
  readonly #operationTimeoutMs: number;
  readonly #pingTimeoutMs: number;
  readonly #condition: ServerCondition;
  #connected = false;
  /** The driver's knowledge of the members. */
  #topology: TopologyDescription | undefined;
  #deployment: Deployment | undefined;
  #transactions: boolean | undefined;

  /** @throws Error for an invalid URL, or one that names an unreadable file */
  constructor(options: MongoOptions) {
    const selection = options.serverSelectionTimeoutMs ?? 2000;
    const settings: MongoClientOptions = {
      // The driver's default of 30 s is too long for a health check or a waiting request.
      serverSelectionTimeoutMS: selection,
      // After a lost connection, operations wait for the next server check. The default is 500 ms.
      minHeartbeatFrequencyMS: 100,
      connectTimeoutMS: Math.max(selection, 2000),
      // A silent server is noticed after this time plus the connect timeout, and its operations then fail. The
      // driver's default is 12 s.
      heartbeatFrequencyMS: Math.max(selection, 500),
      // Reads must see the latest write, whatever the URL or the server's default says. `majority` is not enough:
      // outside a causally consistent session, a new primary's majority snapshot may lack an acknowledged write.
      readPreference: 'primary',
      readConcern: { level: 'local' },
      // An acknowledged lease, fence or checkpoint must survive a failover and a crash. Servers before 5.0 acknowledge
      // a write that one member has in memory, and a URL may ask for less.
      writeConcern: { w: 'majority', journal: true },
      monitorCommands: true,
    };
    this.#client = new MongoClient(withoutConcerns(options.url), settings);
    // The driver reads these files when it connects; without this check each operation would fail later.
    const { tlsCAFile, tlsCRLFile, tlsCertificateKeyFile } = this.#client.options;
    for (const file of [tlsCAFile, tlsCRLFile, tlsCertificateKeyFile]) {
      if (file !== undefined) accessSync(file, constants.R_OK);
    }
    this.#db = this.#client.db(options.database ?? databaseOf(options.url));
    this.#telemetry = options.telemetry;
    this.#condition = mongoCondition(this.#client, this.#db.databaseName, options.telemetry);
    countCommands(this.#client, options.telemetry);
    // Finds out the reason while operations still wait for a server.
    this.#client.on('serverHeartbeatFailed', () => this.#condition.suspect());
    this.#client.on('topologyDescriptionChanged', ({ newDescription }) => {
      this.#topology = newDescription;
    });
    this.#operationTimeoutMs = options.operationTimeoutMs ?? 20_000;
    this.#pingTimeoutMs = options.pingTimeoutMs ?? 1900;
  }

  /** A session for transactions. */
  startSession(): ClientSession {
    return this.#client.startSession({ causalConsistency: false });
  }

  /** Milliseconds to pass to the server with each query that may be slow. It would otherwise finish abandoned queries. */
  get maxTimeMS(): number {
    return this.#operationTimeoutMs;
  }

  /**
   * Runs an operation on the database.
   * @param operation a name from a closed set, for messages and metrics
   * @param limit milliseconds it may take; `Infinity` for index builds
   * @throws the result of `failureOf` for a driver error, with an `UnusableServerError` as its cause if the server
   *   cannot be used; other errors unchanged
   */
  async run<T>(
    operation: string,
    failureOf: FailureOf,
    act: (db: Db) => Promise<T>,
    limit = this.#operationTimeoutMs,
  ): Promise<T> {
    const blocking = this.#condition.blocking(operation);
    if (blocking !== null) throw failureOf(blocking.message, blocking);
    const began = performance.now();
    try {
      // Our own timer: the driver's `timeoutMS` has no effect (7.8), and its socket timeout cannot be lifted for one
      // operation. An abandoned operation may still happen; every write here tolerates that.
      const done = await withTimeout(
        this.#ready()
          .then((db) => act(db))
          .then((result) => ({ result })),
        limit,
      );
      if (done === undefined) throw new NoResponseError(limit);
      this.#condition.worked(operation);
      return done.result;
    } catch (error) {
      if (!isDriverError(error)) throw error;
      const problem = await this.#problemOf(error, operation, limit);
      const message = problem?.message ?? describeError(error, operation, this.#hosts());
      throw failureOf(message, problem ?? error);
    } finally {
      const seconds = (performance.now() - began) / 1000;
      this.#telemetry.observe('mongodb_operation_seconds', seconds, { operation });
    }
  }

  /** Resolves if the database responds within the ping timeout and the user lacks no right as far as is known. */
  async ping(failureOf: FailureOf): Promise<void> {
    await this.run('ping', failureOf, (db) => db.command({ ping: 1 }), this.#pingTimeoutMs);
    const problem = this.#condition.lasting;
    if (problem !== null) throw failureOf(problem.message, problem);
  }

  /** Resolves unless the server says that the user lacks a right. @throws the result of `failureOf` */
  async requireRights(failureOf: FailureOf): Promise<void> {
    const operation = 'connectionStatus';
    const isSufficient = await this.run(operation, failureOf, hasRights, this.#pingTimeoutMs);
    if (isSufficient) return;
    const problem = this.#condition.forbidden(operation, new Error('privileges are missing'));
    throw failureOf(problem.message, problem);
  }

  /** The kind of server; asked once. Call inside `run`. */
  async deployment(): Promise<Deployment> {
    if (this.#deployment === undefined) {
      const hello = await this.#db.admin().command({ hello: 1 });
      this.#deployment =
        hello['msg'] === 'isdbgrid'
          ? 'sharded'
          : typeof hello['setName'] === 'string'
            ? 'replica-set'
            : 'standalone';
      this.#telemetry.log.info('MongoDB found', {
        hosts: this.#hosts(),
        deployment: this.#deployment,
      });
    }
    return this.#deployment;
  }

  /** Whether to use transactions. Call inside `run`. */
  async hasTransactions(): Promise<boolean> {
    this.#transactions ??= (await this.deployment()) !== 'standalone';
    return this.#transactions;
  }

  /** Disables transactions after the server refused one. */
  giveUpTransactions(cause: unknown): void {
    this.#transactions = false;
    this.#telemetry.log.warn('MongoDB refused a transaction; using guarded writes', {
      hosts: this.#hosts(),
      error: cause instanceof Error ? cause.message : String(cause),
    });
  }

  async close(): Promise<void> {
    await this.#condition.close();
    await this.#client.close();
  }

  /** Connects explicitly: after a failed first attempt the driver keeps a closed topology, on which everything fails. */
  async #ready(): Promise<Db> {
    if (!this.#connected) {
      await this.#client.connect();
      this.#connected = true;
    }
    return this.#db;
  }

  /** Reports why the server cannot be used; null if it can be used and has only refused this operation. */
  async #problemOf(
    error: Error,
    operation: string,
    limit: number,
  ): Promise<UnusableServerError | null> {
    const isLost = isUnreachable(error);
    const kind = isLost ? 'unreachable' : 'refused';
    this.#telemetry.count('mongodb_errors_total', { kind });
    this.#telemetry.log.debug('MongoDB operation failed', { operation, error });
    const condition = this.#condition;
    if (isRejectedUser(error)) return condition.rejected(error);
    if (isForbidden(error)) {
      const hasUser = this.#client.options.credentials !== undefined;
      // A ping alone proves nothing about the user, as servers answer it without one.
      return hasUser ? condition.forbidden(operation, error) : condition.rejected(error, operation);
    }
    if (isLeaderless(error, this.#topology)) return condition.leaderless(error);
    if (!isLost) return null;
    // A ping has to respond within two seconds.
    return condition.unreachable(
      error,
      limit <= this.#pingTimeoutMs ? 100 : 1_000,
      nameProblemOf(error),
    );
  }

  #hosts(): string {
    return this.#client.options.hosts.map(String).join(',');
  }
}

const shared = new Map<string, { readonly connection: MongoConnection; users: number }>();

/** One adapter's share of a connection. */
export interface SharedConnection {
  readonly connection: MongoConnection;
  /** Closes the connection once no other adapter uses it. Idempotent. */
  release(): Promise<void>;
}

/** The connection for these options, which adapters of one process share. */
export function shareConnection(options: MongoOptions): SharedConnection {
  const { telemetry: _, ...settings } = options;
  const key = JSON.stringify(Object.entries(settings).sort());
  const entry = shared.get(key) ?? { connection: new MongoConnection(options), users: 0 };
  entry.users += 1;
  shared.set(key, entry);
  let released = false;
  return {
    connection: entry.connection,
    async release() {
      if (released) return;
      released = true;
      entry.users -= 1;
      if (entry.users > 0) return;
      shared.delete(key);
      await entry.connection.close();
    },
  };
}
