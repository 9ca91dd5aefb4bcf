import type { StreamShare } from '../../../../domain/stream-share.ts';
import { LIMIT, prepareForArrays, type Database, type Statement } from '../../database.ts';
import { PACKED, type PackedPage, type PackedRows } from './packed-page.ts';

/** The columns of an event's row, in this order. */
export const COLUMNS =
  'events.position, streams.name, events.revision, events.id, events.type, events.created_at, events.data, events.metadata';

/** A row of {@link COLUMNS}: the type by its number, the time in milliseconds. */
export type LogRow = readonly [number, string, number, string, number, number, string, string];

/** Which rows a page is to have; the others are passed by. */
export interface RowSelection {
  /** Only of streams whose names begin with one of these; looked at by SQLite, so that the others cost little. */
  readonly prefixes?: readonly string[] | undefined;
  /** Only of streams in a share; with prefixes alone. */
  readonly share?: StreamShare | undefined;
  /** Nothing behind this position; default: up to the log's end. */
  readonly upTo?: number | undefined;
}

/** Most events of a page, so that the event loop is never held for long. */
export const PAGE_EVENTS = 500;
/** Positions that a filtered page looks at; those left out cost little. */
const PAGE_SPAN = 4_000;
/**
 * Rows that are fetched together, as one text: no more than 16 MiB where all are as large as can be, and few enough that
 * what is parsed of them is folded while it is in the processor's cache.
 */
const ROWS_AT_ONCE = 32;
/** Characters after which a page ends early. */
export const PAGE_CHARACTERS = 4 * 1024 * 1024;

/** 2^32 divided by the golden ratio, odd: numbers in sequence are far apart (Knuth, volume 3, 6.4). */
const SPREAD = 2_654_435_761;

type StreamSelection = Pick<RowSelection, 'prefixes' | 'share'>;

/** Reads the log's rows in the order of their positions, over somebody's connection. */
export class LogRows {
  readonly #database: Database;
  readonly #head: Statement;
  /** By their condition, which goes by the prefixes' lengths alone: whatever is asked for, there are few. */
  readonly #known = new Map<string, RowStatements>();

  constructor(database: Database) {
    this.#database = database;
    this.#head = prepareForArrays(database, 'SELECT head FROM log');
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
  page(after: number, selection: RowSelection, limit = PAGE_EVENTS): PackedPage {
    const { prefixes, share, upTo: last = Number.MAX_SAFE_INTEGER } = selection;
    // Positions are given out without gaps and become visible in order: up to the head none can come later.
    const head = this.head();
    const end = Math.min(head, last, prefixes === undefined ? head : after + PAGE_SPAN);
    const { packed } = this.#statements({ prefixes, share });
    const begins = inOrder(prefixes);
    const ask = (from: number, most: number): PackedRows | null => {
      const row = packed.get(from, end, ...begins, most);
      const [count, upTo, text] = row as unknown as readonly [number, number, string];
      if (count === 0) return null;
      const share = PAGE_CHARACTERS / text.length;
      // They are large: fewer are a page.
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

  /**
   * The rows of one part, each by itself.
   *
   * @throws the driver's errors
   */
  rows({ after, upTo, count }: PackedRows, streams: StreamSelection): readonly LogRow[] {
    const { rows } = this.#statements(streams);
    return rows.all(after, upTo, ...inOrder(streams.prefixes), count);
  }

  /** Those for such streams. */
  #statements(streams: StreamSelection): RowStatements {
    const condition = conditionOf(streams);
    const known = this.#known.get(condition);
    if (known !== undefined) return known;
    const from = `FROM events JOIN streams ON streams.id = events.stream
      WHERE events.position > ? AND events.position <= ? ${condition}
      ORDER BY events.position ${LIMIT}`;
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

/** Takes what comes behind a position, up to another, the prefixes, and how many at most. */
interface RowStatements {
  readonly rows: Statement;
  /** Their number, the last one's position, and all of them in one text. */
  readonly packed: Statement;
}

function conditionOf({ prefixes, share }: StreamSelection): string {
  if (prefixes === undefined) return '';
  // Not LIKE or GLOB, which have characters with meanings; by length in characters, as SQLite counts.
  const conditions = inOrder(prefixes).map(
    (prefix) => `substr(streams.name, 1, ${[...prefix].length}) = ?`,
  );
  const begins = `AND (${conditions.join(' OR ') || 'FALSE'})`;
  if (share === undefined) return begins;
  // By the stream's number, which costs no look at its name: spread, as of the streams that come about together each may be
  // of one kind.
  return `AND ((events.stream * ${SPREAD}) >> 16) % ${share.of} = ${share.index} ${begins}`;
}

/**
 * The short ones first. SQLite looks no further than the first that a name begins with, and most events are of runs, whose
 * prefix is the shortest: looked at behind all others, it costs as much as half of reading the row.
 */
function inOrder(prefixes: RowSelection['prefixes'] = []): readonly string[] {
  return [...prefixes].sort((a, b) => a.length - b.length);
}
