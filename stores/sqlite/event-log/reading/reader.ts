import {
  EventStoreError,
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

/** A part of the log for a subscription. */
export interface Page {
  readonly events: readonly RecordedEvent[];
  /** Everything up to here is in the events, or was filtered out. */
  readonly upTo: number;
  /** Whether the log ended there when it was read. */
  readonly isLast: boolean;
  /** The event directly after `upTo`, if this release cannot read it. */
  readonly unreadable: Omit<Unreadable, 'position'> | undefined;
}

/** An event of a newer release. */
interface Unreadable {
  readonly position: number;
  readonly stream: string;
  readonly error: EventStoreError;
}

/** Which streams a page holds. */
export interface Selection extends RowSelection {
  /** Only accepted names; other events are not decoded. */
  readonly wants?: (stream: string) => boolean;
}

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
      readonly [string | null, number | null, number | null, number] | undefined;
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
  page(after: number, selection: Selection = {}, limit = PAGE_EVENTS): Page {
    const { parts, upTo, isLast } = this.#read(() => this.#rows.page(after, selection, limit));
    const events: RecordedEvent[] = [];
    for (const part of parts) {
      const unreadable = this.#unpack(part, selection, events);
      if (unreadable === undefined) continue;
      const { position, ...why } = unreadable;
      return { events, upTo: position - 1, isLast: false, unreadable: why };
    }
    return { events, upTo, isLast, unreadable: undefined };
  }

  close(): void {
    this.#database.close();
  }

  /** Adds a part's events. @returns the first one that this release cannot read */
  #unpack(
    part: PackedRows,
    { prefixes, share, wants }: Selection,
    events: RecordedEvent[],
  ): Unreadable | undefined {
    const { decodeParsed } = this.#codec;
    const parsed = decodeParsed === undefined ? null : unpackRows(part);
    if (decodeParsed !== undefined && parsed !== null) {
      return decodeAll(parsed, wants, events, (row) => decodeParsed(this.#parsed(row)));
    }
    const rows = this.#read(() => this.#rows.rows(part, { prefixes, share }));
    return decodeAll(rows, wants, events, (row) => this.#codec.decode(this.#raw(row)));
  }

  #parsed(row: ParsedRow): ParsedEvent {
    const [position, stream, revision, id, type, createdAt, data, metadata] = row;
    // Written out, as every event read passes here.
    return {
      position: formatPosition(position),
      stream,
      revision,
      id,
      type: this.#typeName(type),
      createdAt: timestampOf(createdAt),
      data,
      metadata,
    };
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

/** Decodes the wanted rows, up to the first that this release cannot read, which it returns. */
function decodeAll<Row extends readonly [number, string, ...unknown[]]>(
  rows: readonly Row[],
  wants: Selection['wants'],
  events: RecordedEvent[],
  decode: (row: Row) => RecordedEvent,
): Unreadable | undefined {
  for (const row of rows) {
    const [position, stream] = row;
    if (wants?.(stream) === false) continue;
    try {
      events.push(decode(row));
    } catch (error) {
      // Other errors concern the log, not this event.
      if (!(error instanceof EventStoreError && error.code === 'NEWER_SCHEMA')) throw error;
      return { position, stream, error };
    }
  }
  return undefined;
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
