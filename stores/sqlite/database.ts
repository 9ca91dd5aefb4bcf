import { accessSync, constants, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import type { Telemetry } from '../../observability/telemetry.ts';
import { makeFolder } from '../folder.ts';
import { deleteDatabase, isDatabaseClosed } from './database-file.ts';

/** The oldest usable SQLite. Before it, two connections writing or checkpointing one WAL could corrupt it. */
const OLDEST_SQLITE = '3.51.3';

/** An open connection. The driver exports only the class's value. */
export type Database = InstanceType<typeof DatabaseSync>;
export type Statement = ReturnType<Database['prepare']>;

/** How to open a file. */
export interface DatabaseOptions {
  /** Its folder is created if missing. */
  readonly file: string;
  /** The content of the file, for messages, such as `event log`. */
  readonly what: string;
  /** The schema version (`PRAGMA user_version`, from 1) that this release reads and writes. */
  readonly version: number;
  /** Upgrades a file from an older version (0: empty), in a transaction that only one process gets. */
  readonly migrate: (database: Database, from: number) => void;
  /** Opens for reading: the file must exist with this version. Default: false. */
  readonly readOnly?: boolean;
  /**
   * With `readOnly`: creates no files beside it. A closed file is opened as SQLite's `immutable`, so reads may be wrong
   * if another process starts to write it in the meantime. Default: false.
   */
  readonly immutable?: boolean;
  /** Whether a missing file is created. Default: true. */
  readonly create?: boolean;
  /** `FULL`: a commit survives a power cut. `NORMAL`: it survives a crash of the process. Default: `FULL`. */
  readonly synchronous?: 'FULL' | 'NORMAL' | 'OFF';
  /**
   * `rollback` suits a new file without readers: added pages are written once, where a WAL writes them twice. A file with
   * a WAL keeps it. Default: `wal`.
   */
  readonly journal?: 'wal' | 'rollback';
  /** Milliseconds to wait for another connection's lock. Default: 5,000. */
  readonly busyTimeout?: number;
  /** MiB of WAL after which a commit moves it to the file; 0: never. Default: 64. */
  readonly walMiB?: number;
  /** MiB of page cache. Default: 16. */
  readonly cacheMiB?: number;
  /** Bytes per page of a new file, a power of two. Default: 4,096. */
  readonly pageSize?: number;
}

const BYTES_OF_MIB = 2 ** 20;

/** The file belongs to a newer release, or the library is too old. Nothing was changed. */
export class IncompatibleDatabaseError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'IncompatibleDatabaseError';
  }
}

/**
 * Opens one of the service's files without creating or changing anything. A missing file counts as an empty one.
 * @throws IncompatibleDatabaseError, SQLite's own errors
 */
export function openWithoutChanges(
  options: Omit<DatabaseOptions, 'readOnly' | 'immutable' | 'create'>,
): Database {
  if (existsSync(options.file)) {
    return openDatabase({ ...options, readOnly: true, immutable: true });
  }
  const empty = openMemoryDatabase((database) => options.migrate(database, 0));
  empty.exec('PRAGMA query_only = ON');
  return empty;
}

/**
 * Opens a file whose contents can be rebuilt. A damaged one is deleted and created anew.
 * @throws IncompatibleDatabaseError, SQLite's own errors
 */
export function openRebuildable(options: DatabaseOptions, telemetry: Telemetry): Database {
  const { what, file } = options;
  try {
    const database = openDatabase(options);
    const found = JSON.stringify(database.prepare('PRAGMA quick_check(1)').get());
    if (found.includes('"ok"')) return database;
    database.close();
    telemetry.log.error(`the ${what} ${file} is damaged; creating it anew`, { found });
  } catch (error) {
    if (faultOf(error) !== 'corrupt') throw error;
    telemetry.log.error(`${describeFault(what, file, error)}; creating it anew`);
  }
  deleteDatabase(file);
  return openDatabase(options);
}

/** Opens an empty database in memory. @param migrate creates its tables */
export function openMemoryDatabase(migrate: (database: Database) => void): Database {
  const database = new DatabaseSync(':memory:', { enableForeignKeyConstraints: false });
  migrate(database);
  return database;
}

/** The version of the SQLite library in use. */
export function sqliteVersion(): string {
  const database = openMemoryDatabase(() => undefined);
  try {
    return versionOf(database);
  } finally {
    database.close();
  }
}

function versionOf(database: Database): string {
  return String(database.prepare('SELECT sqlite_version() AS version').get()?.['version']);
}

/**
 * Opens one of the service's files, and creates or upgrades it. Journal mode, `synchronous` and `busy_timeout` are set
 * on every open, as SQLite does not store them all.
 * @throws IncompatibleDatabaseError for a file of a newer release, or an unsafe SQLite; SQLite's own errors, see
 *   {@link internalErrorOf}
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
    // SQLite silently opens a write-protected file for reading, and fails at the first write.
    if (!readOnly) requireWritable(options.file);
    const found = pragma(database, 'user_version');
    if (found > options.version) throw newerFile(options, found);
    if (!readOnly) {
      database.exec(`PRAGMA page_size = ${options.pageSize ?? 4096}`);
      const { journal_mode: mode } = database.prepare('PRAGMA journal_mode').get() ?? {};
      const rollback = options.journal === 'rollback' && mode !== 'wal';
      database.exec(`PRAGMA journal_mode = ${rollback ? 'TRUNCATE' : 'WAL'}`);
      database.exec(`PRAGMA synchronous = ${options.synchronous ?? 'FULL'}`);
      const pages = ((options.walMiB ?? 64) * BYTES_OF_MIB) / pragma(database, 'page_size');
      database.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
      if (found < options.version) migrate(database, options);
    } else if (found < options.version) {
      throw new IncompatibleDatabaseError(
        `the ${options.what} ${options.file} has schema version ${found}, not ${options.version}`,
      );
    }
    setPageCache(database, options.cacheMiB ?? 16);
    database.exec('PRAGMA temp_store = MEMORY');
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/** Sets the connection's page cache in MiB; pages beyond it are dropped. */
export function setPageCache(database: Database, mebibytes: number): void {
  database.exec(`PRAGMA cache_size = ${-1024 * mebibytes}`);
}

/** The kind of a driver error, for the adapters to map to their port's codes. */
export type DatabaseFault =
  | 'busy'
  | 'full'
  | 'read-only'
  | 'io'
  | 'cannot-open'
  | 'corrupt'
  | 'constraint'
  | 'other';

/** The fault of a driver or file system error; undefined for any other error. */
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

/** A fault in words for an operator. */
export function describeFault(what: string, file: string, error: unknown): string {
  const detail = error instanceof Error ? error.message : String(error);
  const fault = faultOf(error);
  return `the ${what} ${file} ${fault === undefined ? 'failed' : faultTexts[fault]}: ${detail}`;
}

/**
 * Executes a statement without rows whose outcome is not needed. `get` is a thirteenth cheaper than `run`, which
 * returns an object each time.
 * @throws the driver's errors
 */
export function execute(statement: Statement, ...values: Parameters<Statement['get']>): void {
  statement.get(...values);
}

/** Prepares a statement that returns rows as arrays, which is faster. */
export function prepareForArrays(database: Database, sql: string): Statement {
  const statement = database.prepare(sql);
  statement.setReturnArrays(true);
  return statement;
}

/**
 * A row limit as a parameter. With a bare `?`, SQLite prepares the statement anew for each value, which costs more than
 * reading a row. Not for queries that should be planned by the limit.
 */
export const ROW_LIMIT = 'LIMIT ? + 0';

/**
 * Runs an action in a transaction, which is rolled back when the action throws.
 * @param kind `read`: only for reads; does not wait for a lock
 * @throws also the driver's errors
 */
export function inTransaction<T>(
  database: Database,
  action: () => T,
  kind: 'write' | 'read' = 'write',
): T {
  database.exec(kind === 'write' ? 'BEGIN IMMEDIATE' : 'BEGIN');
  try {
    const result = action();
    database.exec('COMMIT');
    return result;
  } catch (error) {
    if (database.isTransaction) database.exec('ROLLBACK');
    throw error;
  }
}

/** The value of a numeric PRAGMA. @throws TypeError for an unknown one */
export function pragma(
  database: Database,
  name: 'cache_size' | 'page_size' | 'user_version',
): number {
  const statement = prepareForArrays(database, `PRAGMA ${name}`);
  const [value] = (statement.get() ?? []) as unknown[];
  if (typeof value === 'number') return value;
  throw new TypeError(`SQLite has no setting ${name}`);
}

/** Blocks the thread. For dedicated threads, and at start. */
export function blockThread(milliseconds: number): void {
  Atomics.wait(sleeper, 0, 0, milliseconds);
}

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** The faults by SQLite's primary result code. */
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

/** The `code` of every driver error. */
const DRIVER_ERROR = 'ERR_SQLITE_ERROR';

/**
 * The faults by SQLite's message: errors amid the rows of `all` and `iterate` come from the driver without their
 * number.
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

/** Faults by the system's error code, as from `node:fs`. */
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
  full: 'cannot grow because the disk is full',
  'read-only': 'cannot be written because it is read-only',
  io: 'cannot be read or written because the disk reports an error',
  'cannot-open': 'cannot be opened',
  corrupt: 'is damaged, or not a database',
  constraint: 'refused a row',
  other: 'failed',
};

/** The path, or SQLite's URI form, which can carry options. */
function locationOf({ file, readOnly, immutable, create }: DatabaseOptions): string {
  // A WAL or journal must be read with the file, and its index may have to be created.
  if (readOnly === true) {
    return immutable === true && isDatabaseClosed(file) ? `${fileUri(file)}?immutable=1` : file;
  }
  return create === false ? `${fileUri(file)}?mode=rw` : file;
}

function fileUri(file: string): string {
  return `file:${encodeURI(file).replaceAll('?', '%3f').replaceAll('#', '%23')}`;
}

/** Requires access to both the file and its folder, where the WAL is created. */
function requireWritable(file: string): void {
  for (const path of [file, dirname(file)]) accessSync(path, constants.W_OK);
}

function requireSqlite(database: Database): void {
  const version = versionOf(database);
  if (version.localeCompare(OLDEST_SQLITE, 'en', { numeric: true }) < 0) {
    throw new IncompatibleDatabaseError(
      `SQLite ${version} can corrupt files written by several connections; use ${OLDEST_SQLITE} or newer`,
    );
  }
}

function newerFile(options: DatabaseOptions, found: number): IncompatibleDatabaseError {
  return new IncompatibleDatabaseError(
    `the ${options.what} ${options.file} was written by a newer release (schema version ${found}; this release knows up to ${options.version})`,
  );
}

/** Of several processes that start at once, one migrates; the others wait and find it done. */
function migrate(database: Database, options: DatabaseOptions): void {
  inTransaction(database, () => {
    const from = pragma(database, 'user_version');
    if (from > options.version) throw newerFile(options, from);
    if (from < options.version) {
      options.migrate(database, from);
      database.exec(`PRAGMA user_version = ${options.version}`);
    }
  });
}

/**
 * Retries the whole opening, because any statement may meet the lock of a process that creates, upgrades or closes the
 * file. Switching to WAL and recovery ignore `busy_timeout`, which may be short anyway.
 */
function retryWhileBusy<T>(action: () => T): T {
  const deadline = performance.now() + 10_000;
  for (;;) {
    try {
      return action();
    } catch (error) {
      if (faultOf(error) !== 'busy' || performance.now() > deadline) throw error;
      blockThread(1 + Math.random() * 4);
    }
  }
}
