import { join } from 'node:path';
import { openDatabase, openMemoryDatabase, type Database } from '../database.ts';

/** What the log is called in messages. */
export const LOG = 'event log';

/** Version of the tables below; a file of a later one is refused. */
const VERSION = 1;

/** The log's file in its folder. */
export function logFile(directory: string): string {
  return join(directory, 'events.sqlite');
}

/**
 * Opens the log for the thread that writes it. Checkpoints are made by that thread, between commits, so
 * SQLite's own are off.
 *
 * @param create whether the file may be made; a log that vanished while in use must not be begun anew
 * @param maxBytes the file may not grow beyond this
 */
export function openLogForWriting(
  file: string,
  create: boolean,
  maxBytes: number | undefined,
): Database {
  const database = openDatabase({
    file,
    what: LOG,
    version: VERSION,
    migrate,
    create,
    walMiB: 0,
    cacheMiB: 8,
    pageSize: PAGE_BYTES,
  });
  // What is waited for here is waited for by `acquire`, which is fair; SQLite's own waiting is not.
  database.exec('PRAGMA busy_timeout = 0');
  database.exec(`PRAGMA journal_size_limit = ${128 * 1024 * 1024}`);
  if (maxBytes !== undefined) {
    database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / PAGE_BYTES))}`);
  }
  return database;
}

/** An empty log in memory, for one connection: gone when that is closed. */
export function openLogInMemory(): Database {
  return openMemoryDatabase(migrate);
}

/**
 * Opens the log for reading only. The file must have been made.
 * @param immutable whether no file may be made beside it; see `DatabaseOptions`
 */
export function openLogForReading(file: string, immutable = false): Database {
  const how = { readOnly: true, immutable, cacheMiB: 32 };
  return openDatabase({ file, what: LOG, version: VERSION, migrate, ...how });
}

const PAGE_BYTES = 4096;

/**
 * Stream names and event types are kept once and stand in the rows as integers, as a long random text in
 * an index costs more than all the rest of an append. Positions are given out by the writer from
 * `log.head`, which moves in the same transaction: like AUTOINCREMENT none is ever used twice and none is
 * left out, at one update a commit instead of one a row. A stream's last revision is found at the end of
 * its part of the index; `truncated_revision` keeps it when every event is gone.
 */
function migrate(database: Database): void {
  database.exec(`
    CREATE TABLE log (
      one INTEGER PRIMARY KEY CHECK (one = 1),
      head INTEGER NOT NULL
    );
    INSERT INTO log VALUES (1, 0);
    CREATE TABLE types (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE
    );
    CREATE TABLE streams (
      id INTEGER PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      truncated_revision INTEGER NOT NULL DEFAULT -1
    );
    CREATE TABLE events (
      position INTEGER PRIMARY KEY,
      stream INTEGER NOT NULL,
      revision INTEGER NOT NULL,
      id TEXT NOT NULL,
      type INTEGER NOT NULL,
      created_at INTEGER NOT NULL,
      data TEXT NOT NULL,
      metadata TEXT NOT NULL
    );
    CREATE UNIQUE INDEX events_by_stream ON events (stream, revision);
    CREATE UNIQUE INDEX events_by_id ON events (id);
  `);
}
