import {
  requireReadable,
  type EventCodec,
  type Landmark,
  type ParsedEvent,
  type RawEvent,
  type RecordedEvent,
  type StreamEnd,
  type StreamPage,
  type StreamPart,
} from '../../../../domain/event-store.ts';
import type { LogEntry, LogPage } from '../../../../domain/log-engine.ts';
import { LazyEntry } from '../../../following/lazy-entry.ts';
import { ROW_LIMIT, type Database, type Statement } from '../../database.ts';
import { StatementCache } from '../../statement-cache.ts';
import { onLog } from '../log-error.ts';
import { formatPosition } from '../position.ts';
import { rawEventOf, timestampOf } from '../raw-event.ts';
import { openLogForReading } from '../schema.ts';
import { COLUMNS, LogRows, PAGE_CHARACTERS, PAGE_EVENTS, type RowSelection } from './log-rows.ts';
import { unpackRows, type PackedRows, type ParsedRow } from './packed-page.ts';

/** Events of a stream that are read by default. */
const DEFAULT_LIMIT = 1_000;

/** Reads the log on the main thread, over a connection that commits never block. */
export class LogReader {
  readonly #database: Database;
  readonly #file: string;
  readonly #codec: EventCodec;
  readonly #rows: LogRows;
  readonly #statements: StatementCache;
  readonly #typeNames = new Map<number, string>();

  /**
   * @param immutable whether no file may be created beside the log; see `DatabaseOptions`
   * @throws EventStoreError `UNAVAILABLE`
   */
  constructor(file: string, codec: EventCodec, immutable = false) {
    this.#file = file;
    this.#codec = codec;
    this.#database = onLog(file, () => openLogForReading(file, immutable));
    this.#statements = new StatementCache(this.#database);
    this.#rows = new LogRows(this.#statements);
  }

  /** The last event's position; 0 when there is none. @throws EventStoreError `UNAVAILABLE` */
  head(): number {
    return this.#read(() => this.#rows.head());
  }

  /** Changes with each commit of another connection. @throws EventStoreError `UNAVAILABLE` */
  version(): number {
    return this.#read(() => Number(this.#prepared('PRAGMA data_version').get()?.[0]));
  }

  /** @throws EventStoreError `CORRUPT_EVENT`, `NEWER_SCHEMA`, `UNAVAILABLE` */
  stream(stream: string, part: StreamPart): RecordedEvent[] {
    const { from, direction, limit = DEFAULT_LIMIT, faulty } = part;
    const rows = this.#read(() =>
      direction === 'backwards'
        ? this.#prepared(BACKWARDS).all(stream, from ?? Number.MAX_SAFE_INTEGER, limit)
        : this.#prepared(FORWARDS).all(stream, from ?? 0, limit),
    );
    return rows.map((row: unknown) => {
      const event = this.#codec.decode(this.#raw(row));
      return faulty === true ? event : requireReadable(event);
    });
  }

  /** See the port. @throws EventStoreError `UNAVAILABLE` */
  hasHad({ stream, revision, id, createdAt }: Landmark): boolean {
    const row = this.#read(() => this.#prepared(PLACE).get(revision, stream)) as
      | readonly [string | null, number | null, number | null, number]
      | undefined;
    if (row === undefined) return false;
    const [there, writtenAt, first, truncated] = row;
    if (there !== null) return there === id && timestampOf(Number(writtenAt)) === createdAt;
    return first === null ? truncated >= revision : first > revision;
  }

  /** The log before a position, last event first. @throws EventStoreError `NEWER_SCHEMA`, `UNAVAILABLE` */
  before(position: number, limit: number): RecordedEvent[] {
    const raws: RawEvent[] = [];
    this.#read(() => {
      let characters = 0;
      for (const row of this.#prepared(ALL_BACKWARDS).iterate(position, limit)) {
        const raw = this.#raw(row);
        raws.push(raw);
        characters += raw.data.length + raw.metadata.length;
        if (characters > PAGE_CHARACTERS) break;
      }
    });
    return raws.map((raw) => this.#codec.decode(raw));
  }

  /** Streams with events, by name. @throws EventStoreError `UNAVAILABLE` */
  streams(prefix: string, after: string, limit: number): StreamPage {
    const rows = this.#read(() =>
      this.#prepared(STREAMS).all(
        prefix,
        `${prefix}\u{10FFFF}`,
        after,
        Math.min(limit, PAGE_EVENTS),
      ),
    ) as readonly (readonly (string | number | null)[])[];
    const streams = rows.flatMap(([stream, revision, occurredAt, createdAt]): StreamEnd[] => {
      // Wholly truncated: only its name is kept.
      if (revision === null || revision === undefined) return [];
      const lastAt = occurredAt ?? timestampOf(Number(createdAt));
      return [{ stream: String(stream), revision: Number(revision), lastAt: String(lastAt) }];
    });
    const last = rows.length < Math.min(limit, PAGE_EVENTS) ? undefined : rows.at(-1)?.[0];
    return { streams, next: last === undefined ? null : String(last) };
  }

  /** The log after a position. @throws EventStoreError `UNAVAILABLE` */
  page(after: number, selection: RowSelection = {}, limit = PAGE_EVENTS): LogPage {
    const { parts, upTo, isLast } = this.#read(() => this.#rows.page(after, selection, limit));
    const entries: LogEntry[] = [];
    for (const part of parts) this.#unpack(part, selection, entries);
    return { entries, upTo: formatPosition(upTo), isLast, prefixes: selection.prefixes };
  }

  close(): void {
    this.#database.close();
  }

  /** Adds a part's entries. */
  #unpack(part: PackedRows, { prefixes, share }: RowSelection, entries: LogEntry[]): void {
    const size = Math.ceil(part.text.length / part.count);
    const { decodeParsed } = this.#codec;
    const parsed = decodeParsed === undefined ? null : unpackRows(part);
    if (decodeParsed !== undefined && parsed !== null) {
      for (const row of parsed) {
        const type = this.#typeName(row[4]);
        const decode = (): RecordedEvent => decodeParsed(parsedOf(row, type));
        entries.push(new LazyEntry(row[1], formatPosition(row[0]), size, decode));
      }
      return;
    }
    for (const row of this.#read(() => this.#rows.rows(part, { prefixes, share }))) {
      const raw = this.#raw(row);
      const decode = (): RecordedEvent => this.#codec.decode(raw);
      entries.push(new LazyEntry(row[1], formatPosition(row[0]), size, decode));
    }
  }

  #raw(row: unknown): RawEvent {
    return rawEventOf(row, (type) => this.#typeName(Number(type)));
  }

  #typeName(id: number): string {
    const known = this.#typeNames.get(id);
    if (known !== undefined) return known;
    const types = this.#read(() => this.#prepared('SELECT id, name FROM types').all());
    for (const row of types) this.#typeNames.set(Number(row[0]), String(row[1]));
    return this.#typeNames.get(id) ?? `unknown type ${id}`;
  }

  #prepared(sql: string): Statement {
    return this.#statements.prepared(sql);
  }

  #read<T>(action: () => T): T {
    return onLog(this.#file, action);
  }
}

function parsedOf(row: ParsedRow, type: string): ParsedEvent {
  const [position, stream, revision, id, , createdAt, data, metadata] = row;
  // Written without helpers, as every event read passes through here.
  return {
    position: formatPosition(position),
    stream,
    revision,
    id,
    type,
    createdAt: timestampOf(createdAt),
    data,
    metadata,
  };
}

const IN_STREAM = `SELECT ${COLUMNS} FROM streams JOIN events ON events.stream = streams.id WHERE streams.name = ?`;
const FORWARDS = `${IN_STREAM} AND events.revision >= ? ORDER BY events.revision ${ROW_LIMIT}`;
const BACKWARDS = `${IN_STREAM} AND events.revision <= ? ORDER BY events.revision DESC ${ROW_LIMIT}`;
const ALL_BACKWARDS = `SELECT ${COLUMNS} FROM events JOIN streams ON streams.id = events.stream WHERE events.position < ? ORDER BY events.position DESC ${ROW_LIMIT}`;

/** The event at a revision of a stream; where there is none, the stream's first revision, or its last before truncation. */
const PLACE = `
  SELECT events.id, events.created_at,
    (SELECT min(revision) FROM events WHERE stream = streams.id), streams.truncated_revision
  FROM streams LEFT JOIN events ON events.stream = streams.id AND events.revision = ?
  WHERE streams.name = ?`;

/** Stream names from their index, each with its last event. */
const STREAMS = `
  SELECT part.name, events.revision,
    CASE WHEN json_valid(events.metadata) THEN json_extract(events.metadata, '$.occurredAt') END,
    events.created_at
  FROM (
    SELECT id, name FROM streams
    WHERE name >= ? AND name < ? AND name > ? ORDER BY name ${ROW_LIMIT}
  ) AS part
  LEFT JOIN events ON events.stream = part.id
    AND events.revision = (SELECT max(revision) FROM events WHERE stream = part.id)
  ORDER BY part.name`;
