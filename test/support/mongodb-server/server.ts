import { type Server, type Socket, createServer } from 'node:net';
import { once } from 'node:events';
import { CommandError, DocumentLockedError } from './command-error.ts';
import { Commands, MAX_MESSAGE } from './commands.ts';
import { type Fault, type FaultRule, Faults } from './faults.ts';
import type { Table } from './storage.ts';
import { type Doc, type Request, RequestReader, answer } from './wire.ts';

/** The simulated kind of server. */
export interface ServerOptions {
  /**
   * The name of a replica set with one member, with transactions; default: a standalone server
   * without.
   */
  readonly replicaSet?: string;
  /** A router of a sharded cluster (`mongos`), with transactions; not together with `replicaSet`. Default: false. */
  readonly sharded?: boolean;
  /** Another router of the same cluster, whose data it shares; default: none. */
  readonly beside?: MongoServer;
  /** The server's parameter `internalQueryMaxBlockingSortMemoryUsageBytes`; default 100 MiB. */
  readonly sortMemory?: number;
  /** The server's clock, in milliseconds; default: the machine's. `$$NOW` and `$currentDate` follow it. */
  readonly now?: () => number;
}

/**
 * A stand-in for a MongoDB server, for tests: the real driver talks to it over TCP. It keeps
 * collections in memory, enforces unique indexes, executes queries, updates and transactions, and
 * fails on request. It proves how the adapters handle responses and faults. For a real server's
 * responses, the same tests run against the one that `SVC_TEST_MONGODB_URL` names.
 */
export class MongoServer {
  readonly #faults = new Faults();
  readonly #commands: Commands;
  readonly #sockets = new Set<Socket>();
  readonly #log: { readonly command: string; readonly collection: string; readonly body: Doc }[] =
    [];
  /**
   * A larger message breaks its connection while it is being sent, unless it arrives in one piece.
   * Bytes.
   */
  breaksAbove = MAX_MESSAGE;
  #listener: Server | undefined;
  #port = 0;
  #answers = 0;

  private constructor(options: ServerOptions) {
    const { replicaSet: setName, sharded = false, now = Date.now, sortMemory, beside } = options;
    const identity = () => ({ address: this.address, setName, sharded });
    const storage = beside === undefined ? undefined : beside.#commands.storage;
    this.#commands = new Commands({ identity, now, sortMemory, storage });
  }

  /** A server that listens on a free port. */
  static async start(options: ServerOptions = {}): Promise<MongoServer> {
    const server = new MongoServer(options);
    await server.resume();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.#port}`;
  }

  /** A connection string, with a database's name if given. */
  url(database = ''): string {
    return `mongodb://${this.address}/${database}`;
  }

  /** Every command so far, except those by which drivers monitor the server. */
  get log(): readonly {
    readonly command: string;
    readonly collection: string;
    readonly body: Doc;
  }[] {
    return this.#log;
  }

  /** Clears the log. */
  clearLog(): void {
    this.#log.length = 0;
  }

  /** Adds a fault. */
  fault(rule: FaultRule): Fault {
    return this.#faults.set(rule);
  }

  /** The stored documents of a collection. */
  documents(database: string, collection: string): Doc[] {
    return [...(this.#table(database, collection)?.documents.values() ?? [])];
  }

  /** Names of a collection's indexes. */
  indexes(database: string, collection: string): readonly Doc[] {
    return this.#table(database, collection)?.indexes.map(({ given }) => given) ?? [];
  }

  /** Executes a command as if a client had sent it; for concurrent changes. */
  execute(database: string, command: Doc): Doc {
    return this.#commands.execute({ ...command, $db: database });
  }

  /** Breaks all connections; new ones are accepted. */
  dropConnections(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Becomes unavailable: breaks all connections and refuses new ones. Its data stays. */
  async stop(): Promise<void> {
    const listener = this.#listener;
    if (listener === undefined) return;
    this.#listener = undefined;
    const closed = once(listener, 'close');
    listener.close();
    this.dropConnections();
    this.#commands.stopped();
    await closed;
  }

  /** Becomes available again, on the same port. */
  async resume(): Promise<void> {
    const listener = createServer((socket) => this.#serve(socket));
    listener.listen(this.#port, '127.0.0.1');
    await once(listener, 'listening');
    const bound = listener.address();
    if (bound === null || typeof bound === 'string') throw new Error('not listening on TCP');
    this.#port = bound.port;
    this.#listener = listener;
  }

  #table(database: string, collection: string): Table | undefined {
    return this.#commands.storage.find(`${database}.${collection}`);
  }

  #serve(socket: Socket): void {
    const reader = new RequestReader();
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('close', () => this.#sockets.delete(socket));
    // A client that breaks its connection is not an error.
    socket.on('error', () => socket.destroy());
    // A server without TLS recognises the beginning of a handshake.
    socket.once('data', (chunk) => {
      if (chunk[0] === 0x16 && chunk[1] === 0x03) socket.destroy();
    });
    socket.on('data', (chunk) => {
      if (socket.destroyed) return;
      for (const request of reader.push(chunk)) {
        void this.#handle(socket, request);
      }
      if (reader.due > this.breaksAbove) socket.resetAndDestroy();
    });
  }

  async #handle(socket: Socket, request: Request): Promise<void> {
    this.#note(request.body);
    const fault = this.#faults.meet(request.body);
    if (fault?.effect.kind === 'hold') await fault.released;
    if (fault?.effect.kind === 'interpose') fault.effect.act();
    if (fault?.effect.kind === 'error') {
      const { code, codeName, message, labels } = fault.effect;
      const error = new CommandError(
        code,
        codeName,
        message,
        labels === undefined ? {} : { labels },
      );
      this.#send(socket, request, error.reply());
      return;
    }
    if (fault?.effect.kind === 'answer') {
      this.#send(socket, request, fault.effect.reply);
      return;
    }
    if (fault?.effect.kind === 'drop') {
      if (fault.effect.executed) await this.#executed(socket, request.body);
      socket.destroy();
      return;
    }
    const reply = await this.#executed(socket, request.body);
    if (reply !== undefined) this.#send(socket, request, reply);
  }

  /**
   * The response to a command that waits as long as it must; none if its client has disconnected
   * in the meantime.
   */
  async #executed(socket: Socket, body: Doc): Promise<Doc | undefined> {
    while (!socket.destroyed) {
      try {
        return this.#commands.execute(body);
      } catch (error) {
        if (!(error instanceof DocumentLockedError)) throw error;
        await error.until;
      }
    }
    return undefined;
  }

  #note(body: Doc): void {
    const command = Object.keys(body)[0] ?? '';
    if (['hello', 'ismaster', 'isMaster', 'endSessions'].includes(command)) return;
    this.#log.push({ command, collection: String(body[command]), body });
  }

  #send(socket: Socket, request: Request, reply: Doc): void {
    if (request.silent || socket.destroyed) return;
    this.#answers += 1;
    socket.write(answer(request, reply, this.#answers));
  }
}
