import { Binary } from 'bson';
import { CommandError, DocumentLockedError, noSuchTransaction, overTime } from './command-error.ts';
import { asDoc, asDocs } from './evaluation.ts';
import { type Storage, type Tables, Transaction } from './storage.ts';
import type { Doc } from './wire.ts';

/**
 * Transactions, and the record by which a retried write is done once. Both exist only on a replica
 * set or a router. A standalone server refuses transaction numbers, so drivers omit them.
 */

interface Session {
  number: number;
  /** The open transaction; undefined after its end. */
  transaction: Transaction | undefined;
  /** The response to the write with this number. */
  answered: Doc | undefined;
}

const transactionNumber = 'txnNumber';

export class Sessions {
  readonly #storage: Storage;
  readonly #numbered: boolean;
  readonly #sessions = new Map<string, Session>();

  constructor(storage: Storage, numbered: boolean) {
    this.#storage = storage;
    this.#numbered = numbered;
  }

  /** Executes a command in its session's transaction, once for a retryable write, or directly. */
  execute(command: Doc, run: (tables: Tables) => Doc): Doc {
    if (!(transactionNumber in command)) return this.#alone(command, run);
    if (!this.#numbered) {
      throw new CommandError(
        20,
        'IllegalOperation',
        'Transaction numbers are only allowed on a replica set member or mongos',
      );
    }
    const session = this.#session(command);
    const number = Number(command[transactionNumber]);
    if (command['autocommit'] === false) {
      return this.#inTransaction(session, number, command, run);
    }
    refuseUnrepeatable(command);
    return this.#once(session, number, () => this.#alone(command, run));
  }

  /** commitTransaction. */
  commit(command: Doc): Doc {
    const session = this.#session(command);
    const { transaction } = session;
    if (session.number !== Number(command[transactionNumber])) throw noSuchTransaction();
    if (transaction === undefined) {
      // A repeated commit gets the first one's response.
      if (session.answered === undefined) throw noSuchTransaction();
      return session.answered;
    }
    end(session);
    transaction.commit();
    session.answered = { ok: 1 };
    return session.answered;
  }

  /** Aborts the open transactions of a stopping server. */
  forgetTransactions(): void {
    for (const session of this.#sessions.values()) end(session);
  }

  /** abortTransaction: discards all its writes. */
  abort(command: Doc): Doc {
    const session = this.#session(command);
    if (session.transaction === undefined) throw noSuchTransaction();
    end(session);
    return { ok: 1 };
  }

  /** killSessions: ends their transactions. */
  kill(command: Doc): Doc {
    for (const { id } of asDocs(command['killSessions'])) {
      const session = this.#sessions.get(keyOf(id));
      if (session !== undefined) end(session);
    }
    return { ok: 1 };
  }

  /**
   * Outside of a transaction: a write waits for the transaction that holds its document, or until
   * its timeout, which is immediate here. A test's own writes (without a session) are executed.
   */
  #alone(command: Doc, run: (tables: Tables) => Doc): Doc {
    if (this.#storage.claims.size === 0 || !('lsid' in command)) return run(this.#storage);
    const trial = new Transaction(this.#storage, Infinity);
    try {
      const reply = run(trial);
      trial.commit();
      return reply;
    } catch (error) {
      if (trial.blockedBy === undefined) throw error;
      if ('maxTimeMS' in command) throw overTime();
      throw new DocumentLockedError(trial.blockedBy.over);
    } finally {
      trial.end();
    }
  }

  #inTransaction(
    session: Session,
    number: number,
    command: Doc,
    run: (tables: Tables) => Doc,
  ): Doc {
    refuseInTransaction(command);
    if (command['startTransaction'] === true) {
      end(session);
      session.number = number;
      session.transaction = new Transaction(this.#storage);
      if (asDoc(command['readConcern'])['level'] === 'snapshot') session.transaction.copyAll();
      session.answered = undefined;
    }
    const { transaction } = session;
    if (transaction === undefined || session.number !== number) throw noSuchTransaction();
    try {
      const reply = run(transaction);
      // On a real server, too, an error of a single write ends the whole transaction.
      if ('writeErrors' in reply) end(session);
      return reply;
    } catch (error) {
      end(session);
      throw error;
    }
  }

  #once(session: Session, number: number, run: () => Doc): Doc {
    if (session.number === number && session.answered !== undefined) return session.answered;
    session.number = number;
    end(session);
    session.answered = undefined;
    session.answered = run();
    return session.answered;
  }

  #session(command: Doc): Session {
    const key = keyOf(asDoc(command['lsid'])['id']);
    const known = this.#sessions.get(key);
    if (known !== undefined) return known;
    const made: Session = { number: -1, transaction: undefined, answered: undefined };
    this.#sessions.set(key, made);
    return made;
  }
}

function keyOf(id: unknown): string {
  return id instanceof Binary ? id.toString('hex') : String(id);
}

/**
 * The options that a server rejects in a transaction's statement
 * (`validateWriteConcernForTransaction`, `validateSessionOptions`). A write concern belongs to the
 * commit. A read concern is allowed only in the first statement (SERVER-34366). `count` is rejected
 * too; an aggregation replaces it.
 */
function refuseInTransaction(command: Doc): void {
  if ('count' in command) {
    const message = "Cannot run 'count' in a multi-document transaction.";
    throw new CommandError(263, 'OperationNotSupportedInTransaction', message);
  }
  const late = command['startTransaction'] !== true && 'readConcern' in command;
  if (!late && !('writeConcern' in command)) return;
  const message = `${late ? 'readConcern' : 'writeConcern'} is not allowed within a multi-statement transaction`;
  throw new CommandError(72, 'InvalidOptions', message);
}

/** A write of many documents cannot be retried safely: servers accept no number for it. */
function refuseUnrepeatable(command: Doc): void {
  const many =
    asDocs(command['updates']).some(({ multi }) => multi === true) ||
    asDocs(command['deletes']).some(({ limit }) => Number(limit) === 0);
  if (!many) return;
  const message = 'Cannot use retryable writes with multi=true or limit=0';
  throw new CommandError(72, 'InvalidOptions', message);
}

/** Ends a session's open transaction, if any; its uncommitted writes are lost. */
function end(session: Session): void {
  session.transaction?.end();
  session.transaction = undefined;
}
