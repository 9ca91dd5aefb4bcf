import type { Database, Statement } from '../database.ts';
import { prepareForArrays } from './log-writer.ts';

/** The columns of an event's row, in this order. */
export const COLUMNS =
  'events.position, streams.name, events.revision, events.id, events.type, events.created_at, events.data, events.metadata';

/** A row of {@link COLUMNS}: the type by its number, the time in milliseconds. */
export type LogRow = readonly [number, string, number, string, number, number, string, string];

/** Which rows a page is to have; the others are passed by. */
export interface RowSelection {
  /** Only of streams whose names begin with one of these; looked at by SQLite, so that the others cost little. */
  readonly prefixes?: readonly string[] | undefined;
  /** Nothing behind this position; default: up to the log's end. */
  readonly upTo?: number | undefined;
}

/** The rows of a part of the log. */
export interface RowPage {
  readonly rows: readonly LogRow[];
  /** Everything up to here is in the rows, or was left out. */
  readonly upTo: number;
  /** Nothing lay behind it when it was read. */
  readonly isLast: boolean;
}

/** Most events of a page, so that the event loop is never held for long. */
export const PAGE_EVENTS = 500;
/** Positions that a filtered page looks at; those left out cost little. */
const PAGE_SPAN = 4_000;
/** Rows that are fetched together: a third less work than one by one, and no more than 32 MiB where all are as large as can be. */
const ROWS_AT_ONCE = 64;
/** Characters of data after which a page ends early. */
export const PAGE_CHARACTERS = 4 * 1024 * 1024;

/** Reads the log's rows in the order of their positions, over somebody's connection. */
export class LogRows {
  readonly #database: Database;
  readonly #head: Statement;
  readonly #all: Statement;
  readonly #filtered = new Map<string, Statement>();

  constructor(database: Database) {
    this.#database = database;
    this.#head = prepareForArrays(database, 'SELECT head FROM log');
    this.#all = prepareForArrays(database, selectAll(''));
  }

  /** Number of the last event's position; 0 when there is none. @throws the driver's errors */
  head(): number {
    return Number(this.#head.get()?.[0]);
  }

  /**
   * The next rows after a position.
   *
   * @throws the driver's errors
   */
  page(after: number, selection: RowSelection, limit = PAGE_EVENTS): RowPage {
    const { prefixes, upTo: last = Number.MAX_SAFE_INTEGER } = selection;
    // Positions are given out without gaps and become visible in order: up to the head none can come later.
    const head = this.head();
    const end = Math.min(head, last, prefixes === undefined ? head : after + PAGE_SPAN);
    const statement = prefixes === undefined ? this.#all : this.#select(prefixes);
    const rows: LogRow[] = [];
    let characters = 0;
    for (let from = after; ; from = rows.at(-1)?.[0] ?? from) {
      const asked = Math.min(ROWS_AT_ONCE, limit - rows.length);
      const found = statement.all(from, end, ...(prefixes ?? []), asked) as unknown as LogRow[];
      for (const row of found) {
        rows.push(row);
        characters += row[6].length + row[7].length;
        if (rows.length < limit && characters <= PAGE_CHARACTERS) continue;
        return { rows, upTo: row[0], isLast: row[0] >= head };
      }
      if (found.length < asked || asked <= 0) break;
    }
    const upTo = Math.max(after, end);
    return { rows, upTo, isLast: upTo >= head };
  }

  /** The statement for so many prefixes. */
  #select(prefixes: readonly string[]): Statement {
    // Not LIKE or GLOB, which have characters with meanings; by length in characters, as SQLite counts.
    const conditions = prefixes
      .map((prefix) => `substr(streams.name, 1, ${[...prefix].length}) = ?`)
      .join(' OR ');
    let statement = this.#filtered.get(conditions);
    if (statement === undefined) {
      statement = prepareForArrays(this.#database, selectAll(`AND (${conditions || 'FALSE'})`));
      this.#filtered.set(conditions, statement);
    }
    return statement;
  }
}

function selectAll(condition: string): string {
  return `SELECT ${COLUMNS} FROM events JOIN streams ON streams.id = events.stream WHERE events.position > ? AND events.position <= ? ${condition} ORDER BY events.position LIMIT ?`;
}
