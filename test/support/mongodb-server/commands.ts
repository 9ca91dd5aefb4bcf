import { CommandError, DocumentLockedError } from './command-error.ts';
import { asDoc, asDocs } from './evaluation.ts';
import { Query } from 'mingo';
import { Cursors, count } from './read-commands.ts';
import { Sessions } from './sessions.ts';
import { type Index, Storage, type Tables } from './storage.ts';
import { type Doc, sameBytes } from './wire.ts';
import { MAX_STATEMENTS, findAndModify, insert, remove, update } from './write-commands.ts';

/** Maximum number of indexes of a collection, including the one over `_id`. */
const MAX_INDEXES = 64;

/** Maximum size of a message in bytes; a server breaks the connection of a larger one. */
export const MAX_MESSAGE = 48_000_000;

/** A server's kind, as `hello` shows it. */
export interface Identity {
  /** `host:port` under which clients reach it. */
  readonly address: string;
  /** The replica set's name; undefined for a standalone server. */
  readonly setName: string | undefined;
  /** Whether it is a router of a sharded cluster. */
  readonly sharded: boolean;
}

function standsAlone({ setName, sharded }: Identity): boolean {
  return setName === undefined && !sharded;
}

/** Executes commands: one name, one function. */
export class Commands {
  readonly storage: Storage;
  readonly #sessions: Sessions;
  readonly #cursors: Cursors;
  readonly #identity: () => Identity;
  readonly #now: () => number;

  constructor(parts: {
    readonly identity: () => Identity;
    /** The clock, in milliseconds. */
    readonly now: () => number;
    /** Memory limit of a sort in bytes; default 100 MiB. */
    readonly sortMemory: number | undefined;
    /** Existing data, from another router of the same cluster; default: none. */
    readonly storage: Storage | undefined;
  }) {
    this.storage = parts.storage ?? new Storage();
    this.#identity = parts.identity;
    this.#cursors = new Cursors(parts.sortMemory);
    this.#sessions = new Sessions(this.storage, !standsAlone(parts.identity()));
    this.#now = parts.now;
  }

  /** Drops the state that a stopping server loses; written data stays. */
  stopped(): void {
    this.#sessions.forgetTransactions();
  }

  /**
   * A command's response; a thrown CommandError is a response too.
   * @throws DocumentLockedError if it must run later
   */
  execute(command: Doc): Doc {
    try {
      return this.#dispatch(command);
    } catch (error) {
      if (error instanceof DocumentLockedError) throw error;
      if (error instanceof CommandError) return error.reply();
      // mingo throws for anything unknown; a server would respond with an error.
      const message = error instanceof Error ? error.message : String(error);
      return new CommandError(9, 'FailedToParse', message).reply();
    }
  }

  #dispatch(command: Doc): Doc {
    const name = Object.keys(command)[0] ?? '';
    const now = this.#now();
    const namespace = `${String(command['$db'])}.${String(command[name])}`;
    const inSession = (run: (tables: Tables) => Doc): Doc => this.#sessions.execute(command, run);
    switch (name) {
      case 'hello':
      case 'isMaster':
      case 'ismaster':
        return this.#hello(now);
      case 'ping':
      case 'endSessions':
        return { ok: 1 };
      case 'find':
        return inSession((tables) => this.#cursors.find(tables, namespace, command, now));
      case 'aggregate':
        return inSession((tables) => this.#cursors.aggregate(tables, namespace, command, now));
      case 'count':
        return inSession((tables) => count(tables, namespace, command, now));
      case 'getMore':
        return this.#cursors.getMore(command);
      case 'killCursors':
        return this.#cursors.kill(command);
      case 'insert':
        return inSession((tables) => insert(tables, namespace, command));
      case 'update':
        return inSession((tables) => update(tables, namespace, command, now));
      case 'delete':
        return inSession((tables) => remove(tables, namespace, command, now));
      case 'findAndModify':
        return inSession((tables) => findAndModify(tables, namespace, command, now));
      case 'commitTransaction':
        return this.#sessions.commit(command);
      case 'abortTransaction':
        return this.#sessions.abort(command);
      case 'killSessions':
        return this.#sessions.kill(command);
      default:
        return this.#administer(name, command, namespace);
    }
  }

  #administer(name: string, command: Doc, namespace: string): Doc {
    refuseInTransaction(name, command);
    const database = String(command['$db']);
    switch (name) {
      case 'create':
        return this.#create(namespace);
      case 'createIndexes':
        return this.#createIndexes(namespace, asDocs(command['indexes']), command['commitQuorum']);
      case 'listIndexes':
        return this.#listIndexes(namespace);
      case 'listCollections':
        return this.#listCollections(database, asDoc(command['filter']));
      case 'drop':
        if (this.storage.drop(namespace)) return { ns: namespace, ok: 1 };
        throw new CommandError(26, 'NamespaceNotFound', 'ns not found');
      case 'dropDatabase':
        for (const collection of this.storage.names(database)) {
          this.storage.drop(`${database}.${collection}`);
        }
        return { dropped: database, ok: 1 };
      default:
        throw new CommandError(59, 'CommandNotFound', `no such command: '${name}'`);
    }
  }

  #hello(now: number): Doc {
    const { address, setName, sharded } = this.#identity();
    return {
      helloOk: true,
      ismaster: true,
      isWritablePrimary: true,
      maxBsonObjectSize: 16 * 1024 * 1024,
      maxMessageSizeBytes: MAX_MESSAGE,
      maxWriteBatchSize: MAX_STATEMENTS,
      localTime: new Date(now),
      logicalSessionTimeoutMinutes: 30,
      minWireVersion: 0,
      maxWireVersion: 21,
      readOnly: false,
      ...(sharded && { msg: 'isdbgrid' }),
      ...(setName !== undefined && {
        setName,
        setVersion: 1,
        secondary: false,
        hosts: [address],
        primary: address,
        me: address,
      }),
      ok: 1,
    };
  }

  #create(namespace: string): Doc {
    if (this.storage.find(namespace) !== undefined) {
      throw new CommandError(48, 'NamespaceExists', `Collection already exists. NS: ${namespace}`);
    }
    this.storage.open(namespace);
    return { ok: 1 };
  }

  #createIndexes(namespace: string, given: readonly Doc[], commitQuorum: unknown): Doc {
    if (commitQuorum !== undefined && standsAlone(this.#identity())) {
      throw new CommandError(2, 'BadValue', "Standalones can't specify commitQuorum");
    }
    const table = this.storage.open(namespace);
    const before = table.indexes.length;
    for (const options of given) {
      const index: Index = {
        name: String(options['name']),
        key: asDoc(options['key']),
        unique: options['unique'] === true,
        given: { v: 2, ...options },
      };
      if (!this.#hasAlready(table.indexes, index)) table.indexes.push(index);
      if (table.indexes.length > MAX_INDEXES) {
        throw new CommandError(67, 'CannotCreateIndex', `add index fails, too many indexes`);
      }
    }
    return { numIndexesBefore: before, numIndexesAfter: table.indexes.length, ok: 1 };
  }

  /**
   * @throws CommandError for another index with the same name, or an equal one with another name
   */
  #hasAlready(indexes: readonly Index[], index: Index): boolean {
    const same = indexes.find(({ name, key }) => name === index.name || sameBytes(key, index.key));
    if (same === undefined) return false;
    if (same.name === '_id_' || sameBytes(same.given, index.given)) return true;
    const conflict = `An equivalent index already exists with a different name or options: ${same.name}`;
    throw sameBytes(same.key, index.key)
      ? new CommandError(85, 'IndexOptionsConflict', conflict)
      : new CommandError(86, 'IndexKeySpecsConflict', conflict);
  }

  #listIndexes(namespace: string): Doc {
    const table = this.storage.find(namespace);
    if (table === undefined) {
      throw new CommandError(26, 'NamespaceNotFound', `ns does not exist: ${namespace}`);
    }
    const listed = table.indexes.map(({ given, name }) => ({ ...given, name }));
    return Cursors.whole(namespace, listed);
  }

  #listCollections(database: string, filter: Doc): Doc {
    const query = new Query(filter, {});
    const listed = this.storage
      .names(database)
      .map((name) => ({ name, type: 'collection', options: {}, info: { readOnly: false } }))
      .filter((entry) => query.test(entry));
    return Cursors.whole(`${database}.$cmd.listCollections`, listed);
  }
}

/** Real servers allow some of these commands in a transaction, on a new collection. */
function refuseInTransaction(name: string, command: Doc): void {
  if (command['autocommit'] !== false) return;
  const message = `Cannot run '${name}' in a multi-document transaction.`;
  throw new CommandError(263, 'OperationNotSupportedInTransaction', message);
}
