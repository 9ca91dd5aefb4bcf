import type {
  EventCodec,
  EventStore,
  EncodedEvent,
  NewEvent,
  RawEvent,
  RecordedEvent,
} from '../../../domain/event-store.ts';
import type {
  LogPart,
  LogTransfer,
  RawAppend,
  WantedEvents,
} from '../../../domain/log-transfer.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { ROW_LIMIT, prepareForArrays, type Database, type Statement } from '../database.ts';
import { openSqliteEventStore } from './event-store.ts';
import { onLog } from './log-error.ts';
import { rawEventOf } from './raw-event.ts';
import { logFile, openLogForReading, openLogForWriting } from './schema.ts';

/** Events per part. */
const PART_EVENTS = 200;
/** Characters of data after which a part ends early. */
const PART_CHARACTERS = 4 * 1024 * 1024;
/** Positions per part, where filters may skip most events. */
const PART_POSITIONS = 20_000;
/** Streams without events per part. */
const PART_STREAMS = 10_000;
/** Milliseconds to wait for another process's transaction. */
const LOCK_TIMEOUT_MS = 30_000;

const CONTENTS = `
  SELECT events.position, streams.name, events.revision, events.id, types.name, events.created_at,
    events.data, events.metadata
  FROM events JOIN streams ON streams.id = events.stream JOIN types ON types.id = events.type
  WHERE events.position > ? AND events.position <= ?`;

const IN_ORDER = `ORDER BY events.position ${ROW_LIMIT}`;

/** Takes a JSON array of types. */
const OF_TYPES =
  'AND events.type IN (SELECT id FROM types WHERE name IN (SELECT value FROM json_each(?)))';

/** Takes a JSON array of kinds; a name without `-` is a kind of its own. */
const OF_KINDS = `
  AND substr(streams.name, 1, instr(streams.name || '-', '-') - 1) IN (SELECT value FROM json_each(?))`;

/** Streams of which only the last revision is left. */
const GONE_STREAMS = `
  SELECT name, truncated_revision FROM streams
  WHERE name > ? AND truncated_revision >= 0
    AND NOT EXISTS (SELECT 1 FROM events WHERE stream = streams.id)
  ORDER BY name ${ROW_LIMIT}`;

const SKIP = `
  INSERT INTO streams (name, truncated_revision) VALUES (?, ?)
  ON CONFLICT (name) DO UPDATE SET truncated_revision = max(truncated_revision, excluded.truncated_revision)`;

/**
 * Opens an embedded log for a transfer.
 * @param options.create whether to open it as the target, and create it if missing
 * @param options.immutable whether no file may be created beside a source; see `DatabaseOptions`
 * @throws EventStoreError `UNAVAILABLE`, `NEWER_SCHEMA`
 */
export async function openSqliteTransfer(options: {
  readonly directory: string;
  readonly create: boolean;
  readonly immutable?: boolean;
  readonly telemetry: Telemetry;
}): Promise<LogTransfer> {
  const { directory, create, immutable = false, telemetry } = options;
  const store = create
    ? await openSqliteEventStore({ directory, codec: passThrough, telemetry })
    : null;
  return new SqliteTransfer(logFile(directory), immutable, store);
}

class SqliteTransfer implements LogTransfer {
  readonly engine = 'embedded';
  readonly sideBySide = 1;
  readonly #file: string;
  readonly #immutable: boolean;
  /** null for a source, which is only read. */
  readonly #store: EventStore | null;
  #skipping: Database | undefined;

  constructor(file: string, immutable: boolean, store: EventStore | null) {
    this.#file = file;
    this.#immutable = immutable;
    this.#store = store;
  }

  async *contents(filter: WantedEvents = {}): AsyncGenerator<LogPart> {
    const database = onLog(this.#file, () => openLogForReading(this.#file, this.#immutable));
    try {
      // One transaction, so that concurrent appends and truncations do not show.
      database.exec('BEGIN');
      const head = Number(
        onLog(this.#file, () => database.prepare('SELECT head FROM log').get()?.['head']),
      );
      yield* this.#events(database, head, filter);
      yield* this.#emptyStreams(database);
    } finally {
      // Statements keep a closed connection, and its transaction, alive until they are garbage-collected.
      database.exec('ROLLBACK');
      database.close();
    }
  }

  async append(appends: readonly RawAppend[]): Promise<void> {
    await this.#writable().appendInOrder(
      appends.map(({ stream, expected, events }) => ({
        stream,
        expected,
        // This store's codec passes encoded events through.
        events: events as unknown as readonly NewEvent[],
      })),
    );
  }

  async skipTo(stream: string, revision: number): Promise<void> {
    this.#writable();
    onLog(this.#file, () => {
      this.#skipping ??= openSkipping(this.#file);
      this.#skipping.prepare(SKIP).run(stream, revision - 1);
    });
  }

  async close(): Promise<void> {
    this.#skipping?.close();
    this.#skipping = undefined;
    await this.#store?.close();
  }

  *#events(database: Database, head: number, { types, kinds }: WantedEvents): Generator<LogPart> {
    const parameters = [types, kinds].flatMap((names) =>
      names === undefined ? [] : [JSON.stringify(names)],
    );
    const filters = [types === undefined ? '' : OF_TYPES, kinds === undefined ? '' : OF_KINDS];
    const sql = [CONTENTS, ...filters, IN_ORDER].join(' ');
    const statement = onLog(this.#file, () => prepareForArrays(database, sql));
    for (let after = 0; after < head;) {
      const end = Math.min(head, after + PART_POSITIONS);
      const { events, isFull } = onLog(this.#file, () =>
        readPart(statement, [after, end, ...parameters]),
      );
      const last = events.at(-1);
      const upTo = isFull && last !== undefined ? Number(last.position) : end;
      const read = parameters.length === 0 ? events.length : upTo - after;
      yield { events, read, truncations: [], share: upTo / head };
      after = upTo;
    }
  }

  *#emptyStreams(database: Database): Generator<LogPart> {
    const statement = onLog(this.#file, () => prepareForArrays(database, GONE_STREAMS));
    for (let after = ''; ;) {
      const rows = onLog(this.#file, () => statement.all(after, PART_STREAMS)) as unknown as [
        string,
        number,
      ][];
      const truncations = rows.map(([stream, revision]) => ({ stream, before: revision + 1 }));
      if (truncations.length > 0) yield { events: [], read: 0, truncations, share: 1 };
      const last = rows.at(-1);
      if (last === undefined || rows.length < PART_STREAMS) return;
      [after] = last;
    }
  }

  #writable(): EventStore {
    if (this.#store === null) throw new Error('the event log was opened for reading only');
    return this.#store;
  }
}

/** A second connection for writing; the log's writer notices its changes before each commit. */
function openSkipping(file: string): Database {
  const database = openLogForWriting(file, false, undefined);
  database.exec(`PRAGMA busy_timeout = ${LOCK_TIMEOUT_MS}`);
  return database;
}

/** The next events, and whether the part is full. Then more may follow. */
function readPart(
  statement: Statement,
  parameters: readonly (string | number)[],
): { readonly events: readonly RawEvent[]; readonly isFull: boolean } {
  const events: RawEvent[] = [];
  let characters = 0;
  for (const row of statement.iterate(...parameters, PART_EVENTS)) {
    const event = rawEventOf(row, String);
    events.push(event);
    characters += event.data.length + event.metadata.length;
    if (characters > PART_CHARACTERS) return { events, isFull: true };
  }
  return { events, isFull: events.length === PART_EVENTS };
}

/** Passes encoded events through, cast to the port's types. */
const passThrough: EventCodec = {
  encode: (event) => event as unknown as EncodedEvent,
  decode: (raw) => raw as unknown as RecordedEvent,
};
