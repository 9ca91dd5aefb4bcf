import type { StreamShare } from '../../../../domain/stream-share.ts';
import { ROW_LIMIT, prepareForArrays, type Database, type Statement } from '../../database.ts';
import { PACKED, type PackedPage, type PackedRows } from './packed-page.ts';

/** The columns of an event's row. */
export const COLUMNS =
  'events.position, streams.name, events.revision, events.id, events.type, events.created_at, events.data, events.metadata';

/** A row of {@link COLUMNS}: type as a number, time in milliseconds. */
export type LogRow = readonly [number, string, number, string, number, number, string, string];

/** Which rows a page holds. */
export interface RowSelection {
  /** Only streams whose names begin with one of these; filtered by SQLite, which is cheap. */
  readonly prefixes?: readonly string[] | undefined;
  /** Only streams of a share; requires `prefixes`. */
  readonly share?: StreamShare | undefined;
  /** Nothing after this position; default: the end of the log. */
  readonly upTo?: number | undefined;
}

/** Most events per page, to keep the event loop responsive. */
export const PAGE_EVENTS = 500;
/** Positions covered by a filtered page. */
const PAGE_SPAN = 4_000;
/** Rows fetched as one string: at most 16 MiB with the largest events, and few enough for the processor's cache. */
const ROWS_AT_ONCE = 32;
/** Characters after which a page ends early. */
export const PAGE_CHARACTERS = 4 * 1024 * 1024;

/** 2^32 divided by the golden ratio, odd: spreads consecutive numbers (Knuth, volume 3, 6.4). */
const SPREAD = 2_654_435_761;

type StreamSelection = Pick<RowSelection, 'prefixes' | 'share'>;

/** Reads the log's rows in order of position, over a given connection. */
export class LogRows {
  readonly #database: Database;
  readonly #head: Statement;
  /** By condition, which depends only on the prefixes' lengths, so there are few. */
  readonly #known = new Map<string, RowStatements>();

  constructor(database: Database) {
    this.#database = database;
    this.#head = prepareForArrays(database, 'SELECT head FROM log');
  }

  /** The last event's position; 0 when there is none. @throws the driver's errors */
  head(): number {
    return Number(this.#head.get()?.[0]);
  }

  /** The next rows after a position. @throws the driver's errors */
  page(after: number, selection: RowSelection, limit = PAGE_EVENTS): PackedPage {
    const { prefixes, share, upTo: last = Number.MAX_SAFE_INTEGER } = selection;
    // Positions have no gaps and become visible in order: nothing can still appear before the head.
    const head = this.head();
    const end = Math.min(head, last, prefixes === undefined ? head : after + PAGE_SPAN);
    const { packed } = this.#statements({ prefixes, share });
    const begins = inOrder(prefixes);
    const ask = (from: number, most: number): PackedRows | null => {
      const row = packed.get(from, end, ...begins, most);
      const [count, upTo, text] = row as unknown as readonly [number, number, string];
      if (count === 0) return null;
      const share = PAGE_CHARACTERS / text.length;
      // Large rows: fewer make a page.
      if (share < 1 && count > 1) return ask(from, Math.max(1, Math.floor(count * share)));
      return { after: from, upTo, count, text };
    };
    const parts: PackedRows[] = [];
    let from = after;
    let count = 0;
    let characters = 0;
    while (from < end) {
      const part = ask(from, Math.min(ROWS_AT_ONCE, limit - count));
      if (part === null) break;
      parts.push(part);
      from = part.upTo;
      count += part.count;
      characters += part.text.length;
      if (count >= limit || characters > PAGE_CHARACTERS) {
        return { parts, upTo: from, isLast: from >= head };
      }
    }
    const upTo = Math.max(after, end);
    return { parts, upTo, isLast: upTo >= head };
  }

  /** The rows of one part, one by one. @throws the driver's errors */
  rows({ after, upTo, count }: PackedRows, streams: StreamSelection): readonly LogRow[] {
    const { rows } = this.#statements(streams);
    return rows.all(after, upTo, ...inOrder(streams.prefixes), count);
  }

  #statements(streams: StreamSelection): RowStatements {
    const condition = conditionOf(streams);
    const known = this.#known.get(condition);
    if (known !== undefined) return known;
    const from = `FROM events JOIN streams ON streams.id = events.stream
      WHERE events.position > ? AND events.position <= ? ${condition}
      ORDER BY events.position ${ROW_LIMIT}`;
    const made = {
      rows: prepareForArrays(this.#database, `SELECT ${COLUMNS} ${from}`),
      packed: prepareForArrays(
        this.#database,
        `SELECT count(*), max(position), '[' || group_concat(packed) || ']'
         FROM (SELECT events.position, ${PACKED} AS packed ${from})`,
      ),
    };
    this.#known.set(condition, made);
    return made;
  }
}

/** Take a position, an upper bound, the prefixes, and a limit. */
interface RowStatements {
  readonly rows: Statement;
  /** Returns their number, the last position, and all of them as one string. */
  readonly packed: Statement;
}

function conditionOf({ prefixes, share }: StreamSelection): string {
  if (prefixes === undefined) return '';
  // LIKE and GLOB have wildcards. SQLite counts characters, not UTF-16 units.
  const conditions = inOrder(prefixes).map(
    (prefix) => `substr(streams.name, 1, ${[...prefix].length}) = ?`,
  );
  const begins = `AND (${conditions.join(' OR ') || 'FALSE'})`;
  if (share === undefined) return begins;
  // By the stream's number, which needs no name. Spread, because streams created together are often of different kinds.
  return `AND ((events.stream * ${SPREAD}) >> 16) % ${share.of} = ${share.index} ${begins}`;
}

/**
 * Short prefixes first. Most events belong to runs, whose prefix is the shortest; testing it last would cost half as much
 * as reading the row.
 */
function inOrder(prefixes: RowSelection['prefixes'] = []): readonly string[] {
  return [...prefixes].sort((a, b) => a.length - b.length);
}
