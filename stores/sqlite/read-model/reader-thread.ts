import { parentPort, workerData } from 'node:worker_threads';
import {
  faultOf,
  openDatabase,
  prepareForArrays,
  type Database,
  type Statement as Prepared,
} from '../database.ts';
import type { Listed, ListedDocument } from '../../../projections/read-model.ts';
import { CutTexts } from './cut-texts.ts';
import { COMMON, type CompiledQuery, type Plan, type Statement } from './query-sql.ts';
import type {
  ListRequest,
  ReaderSettings,
  ReadReply,
  ReadRequest,
  ToReader,
} from './reader-protocol.ts';
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
  readonly #cutTexts = new CutTexts();

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
    const { id, query, limit, list } = request;
    // One transaction, so that all statements see the same state.
    this.#database.exec('BEGIN');
    try {
      const plan = this.#planOf(query);
      if (limit === undefined) return { id, kind: 'count', count: this.#count(plan) };
      if (list === undefined) return { id, kind: 'rows', texts: this.#texts(plan, limit) };
      const page = this.#page(plan, limit, list);
      const total = list.counted === null ? null : this.#count(this.#planOf(list.counted));
      const [place] = this.#rows('SELECT position FROM checkpoint', []);
      const position = String(place?.[0] ?? '');
      return { id, kind: 'list', listed: { ...page, total, position } };
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

  /** Row by row, so that of large documents no more than what goes on is in memory. */
  #page(
    plan: Plan,
    limit: number,
    { mostBytes, cut }: ListRequest,
  ): Pick<Listed, 'documents' | 'hasMore'> {
    const documents: ListedDocument[] = [];
    let missing = limit;
    let bytes = 0;
    for (const { sql, parameters } of plan) {
      // One more than is wanted tells whether there are more.
      const rows = this.#prepared(sql).iterate(missing + 1, ...parameters);
      for (const row of rows as Iterable<readonly Cell[]>) {
        if (missing === 0) return { documents, hasMore: true };
        const [key, position, stored] = row.map(String) as [string, string, string];
        const text = cut === undefined ? stored : this.#cutTexts.of(key, position, stored, cut);
        bytes += Buffer.byteLength(text);
        if (bytes > mostBytes && documents.length > 0) return { documents, hasMore: true };
        documents.push({ key, text });
        missing -= 1;
      }
    }
    return { documents, hasMore: false };
  }

  #planOf({ probe, plans }: CompiledQuery): Plan {
    return probe !== null && this.#number(probe) >= COMMON ? plans.common : plans.rare;
  }

  #count(plan: Plan): number {
    return plan.reduce((sum, statement) => sum + this.#number(statement), 0);
  }

  #number({ sql, parameters }: Statement): number {
    return Number(this.#rows(sql, parameters)[0]?.[0] ?? 0);
  }

  #rows(sql: string, parameters: readonly Cell[]): readonly (readonly Cell[])[] {
    return this.#prepared(sql).all(...parameters) as (readonly Cell[])[];
  }

  #prepared(sql: string): Prepared {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      const oldest = this.#statements.keys().next();
      if (this.#statements.size >= KEPT_STATEMENTS && oldest.done !== true) {
        this.#statements.delete(oldest.value);
      }
      statement = prepareForArrays(this.#database, sql);
      this.#statements.set(sql, statement);
    }
    return statement;
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
