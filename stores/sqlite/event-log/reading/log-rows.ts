import type { StreamShare } from '../../../../domain/stream-share.ts';
import { ROW_LIMIT } from '../../database.ts';
import type { StatementCache } from '../../statement-cache.ts';
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

/** Reads the log's rows in order of position. */
export class LogRows {
  readonly #statements: StatementCache;

  constructor(statements: StatementCache) {
    this.#statements = statements;
  }

  /** The last event's position; 0 when there is none. @throws the driver's errors */
  head(): number {
    return Number(this.#statements.prepared('SELECT head FROM log').get()?.[0]);
  }

  /** The next rows after a position. @throws the driver's errors */
  page(after: number, selection: RowSelection, limit = PAGE_EVENTS): PackedPage {
    const { prefixes, share, upTo: last = Number.MAX_SAFE_INTEGER } = selection;
    // Positions have no gaps and become visible in order: nothing can still appear before the head.
    const head = this.head();
    const end = Math.min(head, last, prefixes === undefined ? head : after + PAGE_SPAN);
    const packed = this.#statements.prepared(
      `SELECT count(*), max(position), '[' || group_concat(packed) || ']'
       FROM (SELECT events.position, ${PACKED} AS packed ${rangeOf({ prefixes, share })})`,
    );
    const begins = inOrder(prefixes);
    const fetchRows = (from: number, rows: number): PackedRows | null => {
      const row = packed.get(from, end, ...begins, rows);
      const [count, upTo, text] = row as unknown as readonly [number, number, string];
      if (count === 0) return null;
      const share = PAGE_CHARACTERS / text.length;
      // The rows are large, so fewer of them make a page.
      if (share < 1 && count > 1) return fetchRows(from, Math.max(1, Math.floor(count * share)));
      return { after: from, upTo, count, text };
    };
    const parts: PackedRows[] = [];
    let from = after;
    let count = 0;
    let characters = 0;
    while (from < end) {
      const part = fetchRows(from, Math.min(ROWS_AT_ONCE, limit - count));
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
    const rows = this.#statements.prepared(`SELECT ${COLUMNS} ${rangeOf(streams)}`);
    return rows.all(after, upTo, ...inOrder(streams.prefixes), count);
  }
}

/** Takes a position, an upper bound, the prefixes, and a limit. Differs only by the prefixes' lengths and the share. */
function rangeOf(streams: StreamSelection): string {
  return `FROM events JOIN streams ON streams.id = events.stream
    WHERE events.position > ? AND events.position <= ? ${conditionOf(streams)}
    ORDER BY events.position ${ROW_LIMIT}`;
}

function conditionOf({ prefixes, share }: StreamSelection): string {
  if (prefixes === undefined) return '';
  // LIKE and GLOB have wildcards. SQLite counts characters, not UTF-16 units.
  const conditions = inOrder(prefixes).map(
    (prefix) => `substr(streams.name, 1, ${[...prefix].length}) = ?`,
  );
  const begins = `AND (${conditions.join(' OR ') || 'FALSE'})`;
  if (share === undefined) return begins;
  // Selects by the stream's number, which needs no name. Spread, because streams created together are often of
  // different kinds.
  return `AND ((events.stream * ${SPREAD}) >> 16) % ${share.of} = ${share.index} ${begins}`;
}

/**
 * Short prefixes first. Most events belong to runs, whose prefix is the shortest; testing it last would cost half as much
 * as reading the row.
 */
function inOrder(prefixes: RowSelection['prefixes'] = []): readonly string[] {
  return [...prefixes].sort((a, b) => a.length - b.length);
}
