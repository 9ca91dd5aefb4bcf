import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { makeFolder } from '../folder.ts';
import { isAtRest } from './database-file.ts';

/**
 * The oldest SQLite that may touch our files: before it, two connections writing or checkpointing one
 * WAL file could corrupt it (the WAL-reset bug), which is exactly our layout.
 */
const OLDEST_SQLITE = '3.51.3';

/** An open connection; the driver exports only the class's value. */
export type Database = InstanceType<typeof DatabaseSync>;
/** A prepared statement of one. */
export type Statement = ReturnType<Database['prepare']>;

/** How a file is to be opened. */
export interface DatabaseOptions {
  /** Path of the file; its folder is made when it is not there. */
  readonly file: string;
  /** What the file holds, for messages: `event log`. */
  readonly what: string;
  /** The schema version (`PRAGMA user_version`, from 1) that this release reads and writes. */
  readonly version: number;
  /**
   * Brings a file from an older version (0: empty) up to {@link version}, inside a transaction that only
   * one process gets. Not called when the file has the version already.
   */
  readonly migrate: (database: Database, from: number) => void;
  /** A reader's connection: the file must be there already, with this version. Default: false. */
  readonly readOnly?: boolean;
  /**
   * Of a reader's connection: makes no file beside the one that it reads. A file at rest is opened as what SQLite calls
   * immutable, so whoever reads on while others begin to write it may read what was never there. Default: false.
   */
  readonly immutable?: boolean;
  /** Whether the file may be made when it is missing. Default: true. */
  readonly create?: boolean;
  /** `FULL`: a commit survives a power cut. `NORMAL`: a crash of the process only. Default: `FULL`. */
  readonly synchronous?: 'FULL' | 'NORMAL' | 'OFF';
  /**
   * `rollback`: for a new file that nobody reads yet. Pages that are added go into the file at once and nowhere else,
   * half of the writing that a WAL takes; the end of the process is survived with either. A file that has a WAL keeps
   * it. Default: `wal`.
   */
  readonly journal?: 'wal' | 'rollback';
  /** Milliseconds to wait for another connection's lock. Default: 5,000. */
  readonly busyTimeout?: number;
  /** MiB of WAL after which a commit moves them to the file; 0: never. Default: 64. */
  readonly walMiB?: number;
  /** MiB of page cache. Default: 16. */
  readonly cacheMiB?: number;
  /** Bytes of a page, for a new file: a power of two. Default: 4,096. */
  readonly pageSize?: number;
}

const BYTES_OF_MIB = 2 ** 20;

/** The file was written by a newer release, or the library is too old. Nothing was changed. */
export class IncompatibleDatabaseError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'IncompatibleDatabaseError';
  }
}

/**
 * Opens one of the service's files to look at it: nothing is made, and nothing in it is changed. One that is not there
 * is as an empty one.
 *
 * @throws IncompatibleDatabaseError, SQLite's own errors
 */
export function openUnchanged(
  options: Omit<DatabaseOptions, 'readOnly' | 'immutable' | 'create'>,
): Database {
  if (existsSync(options.file)) {
    return openDatabase({ ...options, readOnly: true, immutable: true });
  }
  const empty = openMemoryDatabase((database) => options.migrate(database, 0));
  empty.exec('PRAGMA query_only = ON');
  return empty;
}

/** Opens an empty database in memory, for one connection: gone when that is closed. @param migrate makes its tables */
export function openMemoryDatabase(migrate: (database: Database) => void): Database {
  const database = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  try {
    migrate(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Opens (and makes, and brings up to date) one of the service's SQLite files. The journal's mode, `synchronous` and
 * `busy_timeout` are set on *every* open, as none of them can be trusted to be remembered.
 *
 * @throws IncompatibleDatabaseError for a file of a newer release, by name, or a SQLite with known
 *   corruption; SQLite's own errors (see {@link faultOf}) when the file can't be opened
 */
export function openDatabase(options: DatabaseOptions): Database {
  return retryWhileBusy(() => openOnce(options));
}

function openOnce(options: DatabaseOptions): Database {
  const readOnly = options.readOnly ?? false;
  if (!readOnly && options.create !== false) makeFolder(dirname(options.file));
  const database = new DatabaseSync(locationOf(options), {
    readOnly,
    timeout: options.busyTimeout ?? 5000,
    enableForeignKeyConstraints: false,
  });
  try {
    requireSqlite(database);
    // SQLite quietly opens for reading what may not be written, and fails at the first write.
    if (!readOnly) requireWritable(options.file);
    const found = settingOf(database, 'user_version');
    if (found > options.version) throw newerFile(options, found);
    if (!readOnly) {
      database.exec(`PRAGMA page_size = ${options.pageSize ?? 4096}`);
      const rollback = options.journal === 'rollback' && !hasWal(database);
      database.exec(`PRAGMA journal_mode = ${rollback ? 'TRUNCATE' : 'WAL'}`);
      database.exec(`PRAGMA synchronous = ${options.synchronous ?? 'FULL'}`);
      const pages = ((options.walMiB ?? 64) * BYTES_OF_MIB) / settingOf(database, 'page_size');
      database.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
      if (found < options.version) migrate(database, options);
    } else if (found < options.version) {
      throw new IncompatibleDatabaseError(
        `the ${options.what} ${options.file} has schema version ${found}, not ${options.version}`,
      );
    }
    keepPages(database, options.cacheMiB ?? 16);
    database.exec('PRAGMA temp_store = MEMORY');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** So many MiB of a file's pages are kept in memory by this connection; what is more than that now is let go. */
export function keepPages(database: Database, mebibytes: number): void {
  database.exec(`PRAGMA cache_size = ${-1024 * mebibytes}`);
}

/** What kind of trouble an error of the driver is, for the adapters to map to their port's codes. */
export type DatabaseFault =
  'busy' | 'full' | 'read-only' | 'io' | 'cannot-open' | 'corrupt' | 'constraint' | 'other';

/** The fault of an error thrown by the driver or the file system; undefined for any other error. */
export function faultOf(error: unknown): DatabaseFault | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('errcode' in error && typeof error.errcode === 'number') {
    return faults.get(error.errcode & 0xff) ?? 'other';
  }
  if (!('code' in error)) return undefined;
  return error.code === DRIVER_ERROR
    ? faultWords.get(error.message)
    : fileFaults.get(String(error.code));
}

/** A fault in words that say what an operator has to look at. */
export function describeFault(what: string, file: string, error: unknown): string {
  const detail = error instanceof Error ? error.message : String(error);
  const fault = faultOf(error);
  return `the ${what} ${file} ${fault === undefined ? 'failed' : faultTexts[fault]}: ${detail}`;
}

/**
 * Executes a statement that gives no rows and whose outcome nobody asks for. `get` does that for a thirteenth less of
 * the processor than `run` (for the change of a run's row), which makes an object of what it has changed each time.
 *
 * @throws the driver's errors, as `run` does
 */
export function execute(statement: Statement, ...values: Parameters<Statement['get']>): void {
  statement.get(...values);
}

/** Prepares a statement whose rows come as arrays, which is faster. */
export function prepareForArrays(database: Database, sql: string): Statement {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  return statement;
}

/**
 * How many rows at most, as a parameter. The bare `?` is what SQLite plans by: it prepares the statement anew for each
 * call, which takes several times as long as to read a row, or thirty of the log. Not for where it is to plan by it.
 */
export const LIMIT = 'LIMIT ? + 0';

/**
 * Runs an action in a transaction that has the right to write from its beginning. Where it throws, nothing of it is kept.
 *
 * @returns what the action returns
 * @throws what the action throws, and the driver's errors
 */
export function inTransaction<T>(database: Database, action: () => T): T {
  database.exec('BEGIN IMMEDIATE');
  try {
    const result = action();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** What a PRAGMA of numbers says now, of a connection or of the file. @throws TypeError for one that says nothing */
export function settingOf(
  database: Database,
  name: 'cache_size' | 'page_size' | 'user_version',
): number {
  const statement = prepareForArrays(database, `PRAGMA ${name}`);
  const [value] = (statement.get() ?? []) as unknown[];
  if (typeof value === 'number') return value;
  throw new TypeError(`SQLite does not know the setting ${name}`);
}

/** Blocks the thread. Only for threads that do nothing else, and at start. */
export function blockFor(milliseconds: number): void {
  Atomics.wait(sleeper, 0, 0, milliseconds);
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** By SQLite's primary result code. */
const faults = new Map<number, DatabaseFault>([
  [5, 'busy'],
  [6, 'busy'],
  [15, 'busy'],
  [13, 'full'],
  [8, 'read-only'],
  [10, 'io'],
  [14, 'cannot-open'],
  [11, 'corrupt'],
  [26, 'corrupt'],
  [19, 'constraint'],
]);

/** What every error of the driver has as its `code`. */
const DRIVER_ERROR = 'ERR_SQLITE_ERROR';

/**
 * By SQLite's own words: an error in the midst of the rows (of `all`, `iterate`) comes from the driver without its
 * number, and what is damaged would be read again and again.
 */
const faultWords = new Map<string, DatabaseFault>([
  ['database is locked', 'busy'],
  ['database table is locked', 'busy'],
  ['database or disk is full', 'full'],
  ['attempt to write a readonly database', 'read-only'],
  ['disk I/O error', 'io'],
  ['unable to open database file', 'cannot-open'],
  ['database disk image is malformed', 'corrupt'],
  ['file is not a database', 'corrupt'],
]);

/** By the system's error code, as `node:fs` gives it. */
const fileFaults = new Map<string, DatabaseFault>([
  ['EACCES', 'read-only'],
  ['EPERM', 'read-only'],
  ['EROFS', 'read-only'],
  ['ENOSPC', 'full'],
  ['EIO', 'io'],
  ['ENOENT', 'cannot-open'],
  ['ENOTDIR', 'cannot-open'],
]);

const faultTexts: Readonly<Record<DatabaseFault, string>> = {
  busy: 'is locked by another process',
  full: 'cannot grow, the disk is full',
  'read-only': 'cannot be written, it is read-only',
  io: 'cannot be read or written, the disk reports an error',
  'cannot-open': 'cannot be opened',
  corrupt: 'is damaged, or not a database',
  constraint: 'refused a row',
  other: 'failed',
};

/** The path, or SQLite's URI form of it, which alone can say what is to be left undone. */
function locationOf({ file, readOnly, immutable, create }: DatabaseOptions): string {
  // A WAL, or a journal, has to be read with the file, by which its index may be made.
  if (readOnly === true) {
    return immutable === true && isAtRest(file) ? `${fileUri(file)}?immutable=1` : file;
  }
  return create === false ? `${fileUri(file)}?mode=rw` : file;
}

function fileUri(file: string): string {
  return `file:${encodeURI(file).replaceAll('?', '%3f').replaceAll('#', '%23')}`;
}

/** Both the file and its folder, where the WAL is made. */
function requireWritable(file: string): void {
  for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK);
}

function requireSqlite(database: Database): void {
  const row: unknown = database.prepare('SELECT sqlite_version() AS version').get();
  const version =
    typeof row === 'object' && row !== null && 'version' in row ? String(row.version) : '';
  if (compareVersions(version, OLDEST_SQLITE) < 0) {
    throw new IncompatibleDatabaseError(
      `SQLite ${version} can corrupt files written by several connections; ${OLDEST_SQLITE} or newer is needed`,
    );
  }
}

function compareVersions(left: string, right: string): number {
  const [a, b] = [left, right].map((text) => text.split('.').map(Number));
  for (let i = 0; i < 3; i += 1) {
    const difference = (a?.[i] ?? 0) - (b?.[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

function hasWal(database: Database): boolean {
  const row: unknown = database.prepare('PRAGMA journal_mode').get();
  return typeof row === 'object' && row !== null && 'journal_mode' in row
    ? row.journal_mode === 'wal'
    : false;
}

function newerFile(options: DatabaseOptions, found: number): IncompatibleDatabaseError {
  return new IncompatibleDatabaseError(
    `the ${options.what} ${options.file} was written by a newer release (schema version ${found}; this release knows up to ${options.version})`,
  );
}

/** One of several processes that start at once migrates; the others wait and find it done. */
function migrate(database: Database, options: DatabaseOptions): void {
  inTransaction(database, () => {
    const from = settingOf(database, 'user_version');
    if (from > options.version) throw newerFile(options, from);
    if (from < options.version) {
      options.migrate(database, from);
      database.exec(`PRAGMA user_version = ${options.version}`);
    }
  });
}

/**
 * While others make the file, bring it up to date or close it, any statement may meet their lock: the first one reads
 * the schema, whatever it is. Turning WAL on and recovering ignore `busy_timeout` where waiting could deadlock, and the
 * timeout may be short. So the whole opening is tried again by hand.
 */
function retryWhileBusy<T>(action: () => T): T {
  const deadline = performance.now() + 10_000;
  for (;;) {
    try {
      return action();
    } catch (error) {
      if (faultOf(error) !== 'busy' || performance.now() > deadline) throw error;
      blockFor(1 + Math.random() * 4);
    }
  }
}
