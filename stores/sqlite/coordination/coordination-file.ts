import { join } from 'node:path';
import type { Telemetry } from '../../../observability/telemetry.ts';
import { Checkpoints } from '../checkpoints.ts';
import { describeFault, faultOf, openDatabase, openUnchanged, type Database } from '../database.ts';
import { deleteDatabase, fileNumber } from '../database-file.ts';

/** The file of the coordination store in its folder. */
export function coordinationFile(directory: string): string {
  return join(directory, 'coordination.db');
}

/** The prepared statements of the coordination store. */
export type Statements = ReturnType<typeof prepare>;

/**
 * The file of the coordination store. All in it is disposable: a damaged one is thrown away and made anew,
 * and a process that still has the old one open changes over to the new one with its next call, as two
 * processes that coordinate by different files would not coordinate at all.
 */
export class CoordinationFile {
  readonly #file: string;
  readonly #telemetry: Telemetry;
  readonly #readOnly: boolean;
  #database: Database;
  #statements: Statements;
  /** Of a file that is only looked at: none. */
  #checkpoints: Checkpoints | null;
  /** The WAL could not be moved the last time, and that was said. */
  #isStuck = false;
  #number: number | undefined;

  /**
   * @param readOnly whether it is only looked at: not made where it is not there, nor thrown away where it is damaged
   * @throws the driver's errors when it can't be opened
   */
  constructor(file: string, telemetry: Telemetry, readOnly: boolean) {
    this.#file = file;
    this.#telemetry = telemetry;
    this.#readOnly = readOnly;
    this.#database = this.#open();
    this.#statements = prepare(this.#database);
    this.#checkpoints = this.#checkpointsOf(this.#database);
    this.#number = fileNumber(file);
  }

  /** Runs an action on the present file; a second time, on a new file, when it turns out to be damaged. */
  run<T>(action: (statements: Statements) => T): T {
    // Closed where it could not be opened again when it was to be.
    if (!this.#database.isOpen || fileNumber(this.#file) !== this.#number) this.#reopen();
    try {
      const result = action(this.#statements);
      this.#checkpoint();
      return result;
    } catch (error) {
      if (faultOf(error) !== 'corrupt' || this.#readOnly) throw error;
      this.#telemetry.log.error(
        `${describeFault('coordination store', this.#file, error)}; beginning anew`,
      );
      if (fileNumber(this.#file) === this.#number) deleteDatabase(this.#file);
      this.#reopen();
      return action(this.#statements);
    }
  }

  /** What was to be done is done: a WAL that can't be moved is moved later, or tells of what is wrong with the next call. */
  #checkpoint(): void {
    try {
      this.#checkpoints?.make(false);
      this.#isStuck = false;
    } catch (error) {
      if (this.#isStuck) return;
      this.#isStuck = true;
      this.#telemetry.log.warn(describeFault('coordination store', this.#file, error));
    }
  }

  close(): void {
    if (this.#database.isOpen) this.#database.close();
  }

  #reopen(): void {
    this.close();
    this.#database = this.#open();
    this.#statements = prepare(this.#database);
    this.#checkpoints = this.#checkpointsOf(this.#database);
    this.#number = fileNumber(this.#file);
  }

  #checkpointsOf(database: Database): Checkpoints | null {
    return this.#readOnly ? null : new Checkpoints(database, LIMITS);
  }

  #open(): Database {
    if (this.#readOnly) return openUnchanged({ ...how, file: this.#file });
    return openSound(this.#file, this.#telemetry);
  }
}

function openSound(file: string, telemetry: Telemetry): Database {
  try {
    const database = open(file);
    const row: unknown = database.prepare('PRAGMA quick_check(1)').get();
    if (JSON.stringify(row).includes('"ok"')) return database;
    database.close();
    telemetry.log.error(`the coordination store ${file} is damaged; beginning anew`, {
      found: JSON.stringify(row),
    });
  } catch (error) {
    if (faultOf(error) !== 'corrupt') throw error;
    telemetry.log.error(`${describeFault('coordination store', file, error)}; beginning anew`);
  }
  deleteDatabase(file);
  return open(file);
}

const open = (file: string): Database => openDatabase({ ...how, file });

const how = {
  what: 'coordination store',
  version: 2,
  migrate: (database: Database, from: number): void => {
    if (from === 1) {
      // Of what is written by then, and by a process of the older release, nobody knows when.
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
  // What a power cut takes with it is as good as run out by then.
  synchronous: 'NORMAL',
  // Short, as it holds up the event loop; the caller tries again later.
  busyTimeout: 50,
  walMiB: 0,
  cacheMiB: 1,
} as const;

/** No more than 4 MiB are moved at once, as it holds up the event loop. It waits as the calls do, by the file's own patience. */
const LIMITS = { busyPages: 1_000, idlePages: 1_000, busyCalls: 64, idleCalls: 64, patience: 0 };

/**
 * What was written at a time that lies ahead by more than this, the clock was put back since: its end says nothing,
 * and may lie hours ahead. As much as calls that are under way at once may come out of order. Milliseconds.
 */
const AHEAD = 1000;

function prepare(database: Database) {
  return {
    /**
     * Name, owner, first fence, end, now → fence; no row while another has it. The first fence is the time:
     * a file that was thrown away must not begin again with fences smaller than those already seen.
     */
    acquire: database.prepare(`
      INSERT INTO leases (name, owner, fence, ends, begins) VALUES (?1, ?2, ?3, ?4, ?5)
      ON CONFLICT (name) DO UPDATE SET
        fence = CASE WHEN owner IS excluded.owner THEN fence ELSE max(fence + 1, excluded.fence) END,
        owner = excluded.owner, ends = excluded.ends, begins = excluded.begins
      WHERE owner IS NULL OR owner = excluded.owner OR ends <= ?5 OR begins > ?5 + ${AHEAD}
      RETURNING fence`),
    release: database.prepare('UPDATE leases SET owner = NULL WHERE name = ? AND owner = ?'),
    heartbeat: database.prepare(
      'INSERT OR REPLACE INTO members (id, about, ends, begins) VALUES (?, ?, ?, ?)',
    ),
    forget: database.prepare('DELETE FROM members WHERE id = ?'),
    alive: database.prepare(`
      SELECT id, about, ends FROM members
      WHERE ends > ?1 AND coalesce(begins, ?1) <= ?1 + ${AHEAD} ORDER BY id`),
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
    dropMembers: database.prepare(`DELETE FROM members WHERE ends <= ?1 OR begins > ?1 + ${AHEAD}`),
    dropCounters: database.prepare('DELETE FROM counters WHERE begins + length <= ?'),
  };
}
