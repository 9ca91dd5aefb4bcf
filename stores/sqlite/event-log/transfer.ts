import type {
  EventCodec,
  EventStore,
  EncodedEvent,
  NewEvent,
  RawEvent,
  RecordedEvent,
} from '../../../domain/event-store.ts';
import { EventStoreError } from '../../../domain/event-store.ts';
import type { LogPart, LogTransfer, RawAppend, Truncation } from '../../../domain/log-transfer.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { describeFault, faultOf, type Database } from '../database.ts';
import { openSqliteEventStore } from './event-store.ts';
import { prepareForArrays } from './log-writer.ts';
import { formatPosition } from './position.ts';
import { LOG, logFile, openLogForReading, openLogForWriting } from './schema.ts';

/** Events of a part. */
const PART = 1_000;
/** Characters of data after which a part ends early. */
const PART_CHARACTERS = 4 * 1024 * 1024;
/** Streams without events that a part tells of. */
const GONE = 10_000;
/** Milliseconds to wait for another process's transaction. */
const LOCK_TIMEOUT = 30_000;

const CONTENTS = `
  SELECT events.position, streams.name, events.revision, events.id, types.name, events.created_at,
    events.data, events.metadata
  FROM events JOIN streams ON streams.id = events.stream JOIN types ON types.id = events.type
  ORDER BY events.position`;

/** Of these nothing is left but how far they went. */
const GONE_STREAMS = `
  SELECT name, truncated_revision FROM streams
  WHERE truncated_revision >= 0 AND NOT EXISTS (SELECT 1 FROM events WHERE stream = streams.id)`;

const SKIP = `
  INSERT INTO streams (name, truncated_revision) VALUES (?, ?)
  ON CONFLICT (name) DO UPDATE SET truncated_revision = max(truncated_revision, excluded.truncated_revision)`;

/**
 * Opens an embedded log to be moved.
 *
 * @param options.create whether the log is made where there is none: as the aim of a move
 * @throws EventStoreError `UNAVAILABLE`, `NEWER_SCHEMA`
 */
export async function openSqliteTransfer(options: {
  readonly directory: string;
  readonly create: boolean;
  readonly telemetry: Telemetry;
}): Promise<LogTransfer> {
  const { directory, create, telemetry } = options;
  const store = create
    ? await openSqliteEventStore({ directory, codec: verbatim, telemetry })
    : null;
  return new SqliteTransfer(logFile(directory), store);
}

class SqliteTransfer implements LogTransfer {
  readonly engine = 'embedded';
  readonly #file: string;
  /** null where the log is only read. */
  readonly #store: EventStore | null;

  constructor(file: string, store: EventStore | null) {
    this.#file = file;
    this.#store = store;
  }

  async *contents(): AsyncGenerator<LogPart> {
    const database = this.#guard(() => openLogForReading(this.#file));
    try {
      // One transaction: what is cut off or appended meanwhile does not change what is read.
      database.exec('BEGIN');
      const head = Number(
        this.#guard(() => database.prepare('SELECT head FROM log').get()?.['head']),
      );
      yield* this.#events(database, head);
      yield* this.#gone(database);
    } finally {
      database.close();
    }
  }

  async append(appends: readonly RawAppend[]): Promise<void> {
    await this.#writable().appendInOrder(
      appends.map(({ stream, expected, events }) => ({
        stream,
        expected,
        // The codec of this store takes texts.
        events: events as unknown as readonly NewEvent[],
      })),
    );
  }

  async skipTo(stream: string, revision: number): Promise<void> {
    this.#writable();
    this.#guard(() => {
      const database = openLogForWriting(this.#file, false, undefined);
      try {
        database.exec(`PRAGMA busy_timeout = ${LOCK_TIMEOUT}`);
        database.prepare(SKIP).run(stream, revision - 1);
      } finally {
        database.close();
      }
    });
  }

  async close(): Promise<void> {
    await this.#store?.close();
  }

  *#events(database: Database, head: number): Generator<LogPart> {
    const rows = this.#guard(() => prepareForArrays(database, CONTENTS).iterate());
    // Guarded row by row: the driver reads on with each.
    const next = (): unknown =>
      this.#guard(() => {
        const { done, value } = rows.next();
        return done === true ? undefined : value;
      });
    let events: RawEvent[] = [];
    let characters = 0;
    for (let row = next(); row !== undefined; row = next()) {
      const event = rawOf(row as readonly (string | number)[]);
      events.push(event);
      characters += event.data.length + event.metadata.length;
      if (events.length < PART && characters < PART_CHARACTERS) continue;
      yield { events, truncations: [], share: Number(event.position) / Math.max(1, head) };
      events = [];
      characters = 0;
    }
    yield { events, truncations: [], share: 1 };
  }

  *#gone(database: Database): Generator<LogPart> {
    let truncations: Truncation[] = [];
    const rows = this.#guard(() => prepareForArrays(database, GONE_STREAMS).iterate());
    for (const row of rows) {
      const [stream, revision] = row as unknown as readonly [string, number];
      truncations.push({ stream, before: revision + 1 });
      if (truncations.length < GONE) continue;
      yield { events: [], truncations, share: 1 };
      truncations = [];
    }
    if (truncations.length > 0) yield { events: [], truncations, share: 1 };
  }

  #writable(): EventStore {
    if (this.#store === null) throw new Error('the log was opened for reading');
    return this.#store;
  }

  #guard<T>(action: () => T): T {
    try {
      return action();
    } catch (error) {
      if (faultOf(error) === undefined) throw error;
      const text = describeFault(LOG, this.#file, error);
      throw new EventStoreError('UNAVAILABLE', text, { cause: error });
    }
  }
}

function rawOf(row: readonly (string | number)[]): RawEvent {
  return {
    position: formatPosition(Number(row[0])),
    stream: String(row[1]),
    revision: Number(row[2]),
    id: String(row[3]),
    type: String(row[4]),
    createdAt: createdAt(Number(row[5])),
    data: String(row[6]),
    metadata: String(row[7]),
  };
}

let lastMilliseconds = Number.NaN;
let lastText = '';

/** The time as text; those of one commit have the same. */
function createdAt(milliseconds: number): string {
  if (milliseconds !== lastMilliseconds) {
    lastText = new Date(milliseconds).toISOString();
    lastMilliseconds = milliseconds;
  }
  return lastText;
}

/** Hands texts through. What it takes and gives are encoded events under the port's types. */
const verbatim: EventCodec = {
  encode: (event) => event as unknown as EncodedEvent,
  decode: (raw) => raw as unknown as RecordedEvent,
};
