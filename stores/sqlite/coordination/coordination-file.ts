import { join } from 'node:path';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { WalCheckpointer } from '../wal-checkpointer.ts';
import {
  describeFault,
  faultOf,
  openRebuildable,
  inTransaction,
  openWithoutChanges,
  type Database,
} from '../database.ts';
import { deleteDatabase, fileNumber } from '../database-file.ts';
import { MAX_CLOCK_SKEW_MS } from './clock-skew.ts';
import { createJobTables, prepareJobStatements } from './job-statements.ts';

/** The message that reports a failure. */
const NOT_CHECKPOINTED = 'could not checkpoint the coordination store; retrying';

/** Path of the coordination store in its folder. */
export function coordinationFile(directory: string): string {
  return join(directory, 'coordination.db');
}

export type Statements = ReturnType<typeof prepareStatements>;

/**
 * The file of the coordination store. It is disposable: a damaged file is deleted and recreated. Processes that still
 * have the old one open switch to the new one with their next call, as all must coordinate through the same file.
 */
export class CoordinationFile {
  readonly #file: string;
  readonly #telemetry: Telemetry;
  readonly #readOnly: boolean;
  #database: Database;
  #statements: Statements;
  /** null for a read-only file. */
  #checkpoints: WalCheckpointer | null;
  /** Whether the last checkpoint failed, which is logged once. */
  #number: number | undefined;

  /** @param readOnly whether nothing is created or deleted @throws the driver's errors when it cannot be opened */
  constructor(file: string, telemetry: Telemetry, readOnly: boolean) {
    this.#file = file;
    this.#telemetry = telemetry;
    this.#readOnly = readOnly;
    [this.#database, this.#statements, this.#checkpoints, this.#number] = this.#open();
  }

  /** Runs an action. If the file turns out to be damaged, runs it again on a new one. */
  run<T>(action: (statements: Statements) => T): T {
    // The database is closed if an earlier attempt to reopen it failed.
    if (!this.#database.isOpen || fileNumber(this.#file) !== this.#number) this.#reopen();
    try {
      const result = action(this.#statements);
      this.#checkpoint();
      return result;
    } catch (error) {
      if (faultOf(error) !== 'corrupt' || this.#readOnly) throw error;
      this.#telemetry.log.error(
        `${describeFault('coordination store', this.#file, error)}; creating it anew`,
      );
      if (fileNumber(this.#file) === this.#number) deleteDatabase(this.#file);
      this.#reopen();
      return action(this.#statements);
    }
  }

  /** The action has succeeded, so a failed checkpoint is only logged; the next call retries it. */
  #checkpoint(): void {
    try {
      this.#checkpoints?.run(false);
      this.#telemetry.failures.worked(NOT_CHECKPOINTED);
    } catch (error) {
      const fault = new Error(describeFault('coordination store', this.#file, error));
      this.#telemetry.failures.failed(NOT_CHECKPOINTED, fault);
    }
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #reopen(): void {
    this.close();
    [this.#database, this.#statements, this.#checkpoints, this.#number] = this.#open();
  }
  #open(): [Database, Statements, WalCheckpointer | null, number | undefined] {
    const options = { ...FILE_OPTIONS, file: this.#file };
    const database = this.#readOnly
      ? openWithoutChanges(options)
      : openRebuildable(options, this.#telemetry);
    const checkpoints = this.#readOnly ? null : new WalCheckpointer(database, CHECKPOINT_LIMITS);
    return [database, prepareStatements(database), checkpoints, fileNumber(this.#file)];
  }
}
const FILE_OPTIONS = {
  what: 'coordination store',
  version: 3,
  migrate: (database: Database, from: number): void => {
    createJobTables(database);
    if (from === 2) return;
    if (from === 1) {
      // The start is unknown for rows of older releases.
      database.exec(`
        ALTER TABLE leases ADD COLUMN begins REAL;
        ALTER TABLE members ADD COLUMN begins REAL;
      `);
      return;
    }
    database.exec(`
      CREATE TABLE leases (
        name TEXT PRIMARY KEY, owner TEXT, fence INTEGER NOT NULL, ends REAL NOT NULL,
        begins REAL) WITHOUT ROWID;
      CREATE TABLE members (
        id TEXT PRIMARY KEY, about TEXT NOT NULL, ends REAL NOT NULL, begins REAL) WITHOUT ROWID;
      CREATE TABLE counters (
        name TEXT NOT NULL, length REAL NOT NULL, begins REAL NOT NULL, sum REAL NOT NULL,
        PRIMARY KEY (name, length)) WITHOUT ROWID;
      CREATE TABLE remembered (
        name TEXT PRIMARY KEY, value TEXT NOT NULL, fence INTEGER NOT NULL) WITHOUT ROWID;
    `);
  },
  // Rows that a power cut loses have expired by then anyway.
  synchronous: 'NORMAL',
  // Short, because it blocks the event loop; the caller retries.
  busyTimeout: 50,
  walMiB: 0,
  cacheMiB: 1,
} as const;

/** At most 4 MiB are moved at once, as that blocks the event loop. */
const CHECKPOINT_LIMITS = {
  busyPages: 1_000,
  idlePages: 1_000,
  busyCalls: 64,
  idleCalls: 64,
  patience: 0,
};

function prepareStatements(database: Database) {
  return {
    /**
     * Name, owner, first fence, end, now → fence; no row while another owner holds it. The first fence is the time, so
     * that a recreated file does not repeat smaller fences.
     */
    acquire: database.prepare(`
      INSERT INTO leases (name, owner, fence, ends, begins) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (name) DO UPDATE SET
        fence = CASE WHEN owner IS excluded.owner THEN fence ELSE max(fence + 1, excluded.fence) END,
        owner = excluded.owner, ends = excluded.ends, begins = excluded.begins
      WHERE owner IS NULL OR owner = excluded.owner OR ends <= ?5 OR begins > ?5 + ${MAX_CLOCK_SKEW_MS}
      RETURNING fence`),
    release: database.prepare('UPDATE leases SET owner = NULL WHERE name = ? AND owner = ?'),
    heartbeat: database.prepare(
      'INSERT OR REPLACE INTO members (id, about, ends, begins) VALUES (?, ?, ?, ?)',
    ),
    forget: database.prepare('DELETE FROM members WHERE id = ?'),
    alive: database.prepare(`
      SELECT id, about, ends FROM members
      WHERE ends > ?1 AND coalesce(begins, ?1) <= ?1 + ${MAX_CLOCK_SKEW_MS} ORDER BY id`),
    count: database.prepare(`
      INSERT INTO counters (name, length, begins, sum) VALUES (?, ?, ?, ?)
      ON CONFLICT (name, length) DO UPDATE SET
        sum = CASE WHEN begins = excluded.begins THEN sum + excluded.sum ELSE excluded.sum END,
        begins = excluded.begins
      RETURNING sum`),
    counted: database.prepare(
      'SELECT sum FROM counters WHERE name = ? AND length = ? AND begins = ?',
    ),
    recall: database.prepare('SELECT value FROM remembered WHERE name = ?'),
    remember: database.prepare(`
      INSERT INTO remembered (name, value, fence) VALUES (?, ?, ?)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value, fence = excluded.fence
      WHERE excluded.fence >= fence`),
    dropMembers: database.prepare(
      `DELETE FROM members WHERE ends <= ?1 OR begins > ?1 + ${MAX_CLOCK_SKEW_MS}`,
    ),
    dropCounters: database.prepare('DELETE FROM counters WHERE begins + length <= ?'),
    jobs: prepareJobStatements(database),
    /** Runs an action in one transaction. */
    atOnce: <T>(action: () => T): T => inTransaction(database, action),
    /** Runs reads in one transaction. */
    readAtOnce: <T>(action: () => T): T => inTransaction(database, action, 'read'),
  };
}
