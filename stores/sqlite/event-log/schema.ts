import { join } from 'node:path';
import { openDatabase, openMemoryDatabase, type Database } from '../database.ts';

/** The log's name in messages. */
export const LOG = 'event log';

/** Version of the tables below; files of later versions are refused. */
const VERSION = 1;

/** The log's file in its folder. */
export function logFile(directory: string): string {
  return join(directory, 'events.sqlite');
}

/**
 * Opens the log for the writer thread, which makes the checkpoints itself.
 * @param create whether a missing file is created; a log that vanished while in use must not be
 * @param maxBytes largest size of the file
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
  // `acquire` waits for the lock, fairly; SQLite's own waiting is not fair.
  database.exec('PRAGMA busy_timeout = 0');
  database.exec(`PRAGMA journal_size_limit = ${128 * 1024 * 1024}`);
  if (maxBytes !== undefined) {
    database.exec(`PRAGMA max_page_count = ${Math.max(1, Math.floor(maxBytes / PAGE_BYTES))}`);
  }
  return database;
}

/** Opens an empty log in memory. */
export function openLogInMemory(): Database {
  return openMemoryDatabase(migrate);
}

/** Opens an existing log for reading. @param immutable whether no file may be created beside it; see `DatabaseOptions` */
export function openLogForReading(file: string, immutable = false): Database {
  const options = { readOnly: true, immutable, cacheMiB: 32 };
  return openDatabase({ file, what: LOG, version: VERSION, migrate, ...options });
}

const PAGE_BYTES = 4096;

/**
 * Rows refer to stream names and event types by number, because a long random string in an index costs more than the
 * rest of an append. The writer assigns positions from `log.head`, which moves in the same transaction, so none is
 * reused or left out. A stream's last revision comes from its index; `truncated_revision` keeps it when no event is left.
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
