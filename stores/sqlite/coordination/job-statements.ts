import type { Database } from '../database.ts';
import { MAX_CLOCK_SKEW_MS } from './clock-skew.ts';

/** Leases that are over, and silent workers, are kept for this long. Milliseconds. */
const KEPT_LEASES_MS = 86_400_000;
const KEPT_WORKERS_MS = 2 * 86_400_000;

export function createJobTables(database: Database): void {
  database.exec(`
    CREATE TABLE jobs (
      job TEXT PRIMARY KEY, lease TEXT NOT NULL, worker TEXT NOT NULL, agent TEXT NOT NULL,
      run TEXT NOT NULL, begins REAL NOT NULL, ends REAL NOT NULL, deadline REAL NOT NULL,
      losses INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE workers (id TEXT PRIMARY KEY, seen REAL NOT NULL) WITHOUT ROWID;
  `);
}

export type JobStatements = ReturnType<typeof prepareJobStatements>;

export function prepareJobStatements(database: Database) {
  return {
    /**
     * Job, lease, worker, agent, run, now, end, deadline → losses; no row while a lease lasts or has timed out. A lease
     * is lost if its worker was silent until its end, which is no later than the deadline.
     */
    take: database.prepare(`
      INSERT INTO jobs (job, lease, worker, agent, run, begins, ends, deadline, losses)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)
      ON CONFLICT (job) DO UPDATE SET
        lease = excluded.lease, worker = excluded.worker, agent = excluded.agent, run = excluded.run,
        begins = excluded.begins, ends = excluded.ends, deadline = excluded.deadline,
        losses = losses + 1
      WHERE (ends <= ?6 AND ends <= deadline) OR begins > ?6 + ${MAX_CLOCK_SKEW_MS}
      RETURNING losses`),
    get: database.prepare('SELECT * FROM jobs WHERE job = ?'),
    /** Job, lease, now, end → worker, agent, run; no row for another lease, or one that is over. */
    renew: database.prepare(`
      UPDATE jobs SET begins = ?3, ends = ?4
      WHERE job = ?1 AND lease = ?2 AND ends > ?3 AND deadline > ?3
        AND begins <= ?3 + ${MAX_CLOCK_SKEW_MS}
      RETURNING worker, agent, run`),
    check: database.prepare(`
      SELECT worker, agent, run FROM jobs
      WHERE job = ?1 AND lease = ?2 AND ends > ?3 AND deadline > ?3
        AND begins <= ?3 + ${MAX_CLOCK_SKEW_MS}`),
    drop: database.prepare('DELETE FROM jobs WHERE job = ? AND lease = ?'),
    all: database.prepare('SELECT * FROM jobs'),
    see: database.prepare('INSERT OR REPLACE INTO workers (id, seen) VALUES (?, ?)'),
    seen: database.prepare(
      `SELECT id, seen FROM workers WHERE seen BETWEEN ?1 - ${KEPT_WORKERS_MS} AND ?1 + ${MAX_CLOCK_SKEW_MS}`,
    ),
    dropOld: database.prepare(
      `DELETE FROM jobs WHERE ends + ${KEPT_LEASES_MS} <= ?1 OR begins > ?1 + ${MAX_CLOCK_SKEW_MS}`,
    ),
    dropUnseen: database.prepare(
      `DELETE FROM workers WHERE seen + ${KEPT_WORKERS_MS} <= ?1 OR seen > ?1 + ${MAX_CLOCK_SKEW_MS}`,
    ),
  };
}
