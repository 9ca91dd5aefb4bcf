import { parentPort, workerData } from 'node:worker_threads';
import type { Listed, ListedDocument } from '../../../projections/read-model.ts';
import { faultOf, type Database } from '../database.ts';
import { StatementCache } from '../statement-cache.ts';
import { CutDocumentCache } from './cut-document-cache.ts';
import { COMMON_ROWS, type CompiledQuery, type Plan, type Statement } from './query-sql.ts';
import type {
  ListRequest,
  ReaderSettings,
  ReadReply,
  ReadRequest,
  ToReader,
} from './reader-protocol.ts';
import { openView, type Cell } from './view-table.ts';

/**
 * The entry of a reader thread. It runs queries on its own connections, so that slow ones do not block the event loop.
 * Documents go back as JSON; the caller parses them.
 */

const { immutable } = workerData as ReaderSettings;

class ViewReader {
  readonly #database: Database;
  readonly #statements: StatementCache;
  readonly #cutTexts = new CutDocumentCache();

  constructor(file: string) {
    this.#database = openView(file, immutable, 1_000);
    this.#statements = new StatementCache(this.#database);
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
      // A failing disk may have ended it already; ending it again would hide the cause.
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

  /** Reads row by row, so that only the documents of the page are in memory. */
  #page(
    plan: Plan,
    limit: number,
    { mostBytes, cut }: ListRequest,
  ): Pick<Listed, 'documents' | 'hasMore'> {
    const documents: ListedDocument[] = [];
    let missing = limit;
    let bytes = 0;
    for (const { sql, parameters } of plan) {
      // One document more than requested shows whether there are more.
      const rows = this.#statements.prepared(sql).iterate(missing + 1, ...parameters);
      for (const row of rows as Iterable<readonly Cell[]>) {
        if (missing === 0) return { documents, hasMore: true };
        const [key, position, stored] = row.map(String) as [string, string, string];
        const text = cut === undefined ? stored : this.#cutTexts.cut(key, position, stored, cut);
        bytes += Buffer.byteLength(text);
        if (bytes > mostBytes && documents.length > 0) return { documents, hasMore: true };
        documents.push({ key, text });
        missing -= 1;
      }
    }
    return { documents, hasMore: false };
  }

  #planOf({ probe, plans }: CompiledQuery): Plan {
    return probe !== null && this.#number(probe) >= COMMON_ROWS ? plans.common : plans.rare;
  }

  #count(plan: Plan): number {
    return plan.reduce((sum, statement) => sum + this.#number(statement), 0);
  }

  #number({ sql, parameters }: Statement): number {
    return Number(this.#rows(sql, parameters)[0]?.[0] ?? 0);
  }

  #rows(sql: string, parameters: readonly Cell[]): readonly (readonly Cell[])[] {
    return this.#statements.prepared(sql).all(...parameters) as (readonly Cell[])[];
  }
}

const views = new Map<number, ViewReader>();

function answer(request: ReadRequest): ReadReply {
  try {
    let view = views.get(request.view);
    if (view === undefined) views.set(request.view, (view = new ViewReader(request.file)));
    return view.answer(request);
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
      views.get(message.view)?.close();
      views.delete(message.view);
      break;
    case 'end':
      for (const view of views.values()) view.close();
      views.clear();
      parentPort?.close();
      break;
  }
});

// Reports the start: see `FromReader`.
parentPort?.postMessage([]);
