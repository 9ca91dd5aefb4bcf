import { parentPort, workerData } from 'node:worker_threads';
import {
  faultOf,
  openDatabase,
  prepareForArrays,
  type Database,
  type Statement as Prepared,
} from '../database.ts';
import { COMMON, type Plan, type Statement } from './query-sql.ts';
import type { ReaderSettings, ReadReply, ReadRequest, ToReader } from './reader-protocol.ts';
import { LAYOUT_VERSION, type Cell } from './view-table.ts';

/**
 * The entry of a reading thread: runs queries on connections of its own, so that a long one does not hold
 * up the event loop. Only texts go back; the thread that asked parses them.
 */

/** Page cache of each connection, in MiB: there is one for each view in each thread, and the system's behind them. */
const CACHE = 8;

/** Prepared statements kept for each connection; queries with other shapes push out the oldest. */
const KEPT_STATEMENTS = 200;

const { immutable } = workerData as ReaderSettings;

class Connection {
  readonly #database: Database;
  readonly #statements = new Map<string, Prepared>();

  constructor(file: string) {
    this.#database = openDatabase({
      file,
      what: 'view',
      version: LAYOUT_VERSION,
      migrate: () => undefined,
      readOnly: true,
      immutable,
      busyTimeout: 1_000,
      cacheMiB: CACHE,
    });
  }

  answer(request: ReadRequest): ReadReply {
    const { id, query, limit } = request;
    // One transaction, so that all statements of a plan see the same state.
    this.#database.exec('BEGIN');
    try {
      const { probe, plans } = query;
      const common = probe !== null && this.#number(probe) >= COMMON;
      const plan = common ? plans.common : plans.rare;
      if (limit !== undefined) return { id, kind: 'rows', texts: this.#texts(plan, limit) };
      const counted = plan.reduce((sum, statement) => sum + this.#number(statement), 0);
      return { id, kind: 'count', count: counted };
    } finally {
      // A disk that fails has ended it already; to end it again would say that, and not what was wrong.
      if (this.#database.isTransaction) this.#database.exec('COMMIT');
    }
  }

  close(): void {
    this.#database.close();
  }

  #texts(plan: Plan, limit: number): readonly string[] {
    const texts: string[] = [];
    let missing = limit;
    for (const { sql, parameters } of plan) {
      if (missing <= 0) break;
      const rows = this.#rows(sql, [missing, ...parameters]);
      for (const row of rows) texts.push(String(row[0]), String(row[1]), String(row[2]));
      missing -= rows.length;
    }
    return texts;
  }

  #number({ sql, parameters }: Statement): number {
    return Number(this.#rows(sql, parameters)[0]?.[0] ?? 0);
  }

  #rows(sql: string, parameters: readonly Cell[]): readonly (readonly Cell[])[] {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      const oldest = this.#statements.keys().next();
      if (this.#statements.size >= KEPT_STATEMENTS && oldest.done !== true) {
        this.#statements.delete(oldest.value);
      }
      statement = prepareForArrays(this.#database, sql);
      this.#statements.set(sql, statement);
    }
    return statement.all(...parameters) as (readonly Cell[])[];
  }
}

const connections = new Map<number, Connection>();

function answer(request: ReadRequest): ReadReply {
  try {
    let connection = connections.get(request.view);
    if (connection === undefined) {
      connection = new Connection(request.file);
      connections.set(request.view, connection);
    }
    return connection.answer(request);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { id: request.id, kind: 'failed', fault: faultOf(error), message };
  }
}

parentPort?.on('message', (message: ToReader) => {
  switch (message.kind) {
    case 'read':
      parentPort?.postMessage(message.requests.map(answer));
      break;
    case 'forget':
      connections.get(message.view)?.close();
      connections.delete(message.view);
      break;
    case 'end':
      for (const connection of connections.values()) connection.close();
      connections.clear();
      parentPort?.close();
      break;
  }
});

// It has started: see `FromReader`.
parentPort?.postMessage([]);
