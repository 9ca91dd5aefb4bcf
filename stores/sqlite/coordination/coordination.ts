import type { JsonObject } from '../../../domain/json.ts';
import type { Telemetry } from '../../../observability/telemetry.ts';
import {
  CoordinationError,
  type Coordination,
  type Lease,
  type LiveMember,
} from '../../../scheduler/coordination.ts';
import { describeFault, faultOf } from '../database.ts';
import { makeFolder } from '../../folder.ts';
import { coordinationFile, CoordinationFile, type Statements } from './coordination-file.ts';
import { SqliteJobLeases } from './job-leases.ts';

/** How long a call is retried while others write, in milliseconds. */
const RETRY_MS = 2_000;
/** How often expired rows are deleted, in milliseconds. */
const CLEANING_INTERVAL_MS = 60_000;

/**
 * Opens the embedded coordination store, `coordination.db` in a folder, for all processes of one machine. They share
 * the machine's clock.
 * @param options.directory created if missing
 * @param options.readOnly creates and deletes nothing; a missing file counts as empty. Default: false
 * @param options.clock the time in milliseconds; default `Date.now`
 * @throws CoordinationError when the file is unusable
 */
export async function openSqliteCoordination(options: {
  readonly directory: string;
  readonly telemetry: Telemetry;
  readonly readOnly?: boolean;
  readonly clock?: () => number;
}): Promise<Coordination> {
  const { directory, telemetry, readOnly = false } = options;
  const path = coordinationFile(directory);
  try {
    if (!readOnly) makeFolder(directory);
    const file = new CoordinationFile(path, telemetry, readOnly);
    return new SqliteCoordination(path, file, options.clock ?? Date.now);
  } catch (error) {
    throw new CoordinationError(describeFault('coordination store', path, error), error);
  }
}

/** Each call is one small statement on the calling thread, tens of microseconds. */
class SqliteCoordination implements Coordination {
  readonly jobs: SqliteJobLeases;
  readonly #path: string;
  readonly #file: CoordinationFile;
  readonly #clock: () => number;
  #cleanedAt: number;
  #closed = false;

  constructor(path: string, file: CoordinationFile, clock: () => number) {
    this.#path = path;
    this.#file = file;
    this.#clock = clock;
    this.#cleanedAt = clock();
    this.jobs = new SqliteJobLeases((action) => this.#run(action));
  }

  async acquire(name: string, owner: string, ttl: number): Promise<Lease | null> {
    return this.#run((statements, now) => {
      const row = statements.acquire.get(name, owner, firstFence(now), now + ttl, now);
      return row === undefined ? null : { fence: Number(row['fence']), remaining: ttl };
    });
  }

  async release(name: string, owner: string): Promise<void> {
    await this.#run((statements) => statements.release.run(name, owner));
  }

  async heartbeat(id: string, about: JsonObject, ttl: number): Promise<void> {
    await this.#run((statements, now) => {
      this.#clean(statements, now);
      statements.heartbeat.run(id, JSON.stringify(about), now + ttl, now);
    });
  }

  async forget(id: string): Promise<void> {
    await this.#run((statements) => statements.forget.run(id));
  }

  async alive(): Promise<readonly LiveMember[]> {
    return this.#run((statements, now) => {
      const rows = statements.alive.all(now) as { id: string; about: string; ends: number }[];
      return rows.map(({ id, about, ends }) => ({
        id,
        about: JSON.parse(about) as JsonObject,
        remaining: ends - now,
      }));
    });
  }

  async count(name: string, by: number, window: number): ReturnType<Coordination['count']> {
    return this.#run((statements, now) => {
      this.#clean(statements, now);
      const begins = Math.floor(now / window) * window;
      const row = statements.count.get(name, window, begins, by);
      return { sum: Number(row?.['sum'] ?? by), remaining: begins + window - now };
    });
  }

  async readCount(name: string, window: number): ReturnType<Coordination['readCount']> {
    return this.#run((statements, now) => {
      const begins = Math.floor(now / window) * window;
      const row = statements.counted.get(name, window, begins);
      return row === undefined
        ? null
        : { sum: Number(row['sum']), remaining: begins + window - now };
    });
  }

  async recall(name: string): Promise<string | null> {
    return this.#run((statements) => {
      const row = statements.recall.get(name);
      return row === undefined ? null : String(row['value']);
    });
  }

  async remember(name: string, value: string, fence: number): Promise<boolean> {
    return this.#run(
      (statements) => Number(statements.remember.run(name, value, fence).changes) > 0,
    );
  }

  async ping(): Promise<void> {
    await this.recall('');
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#file.close();
  }

  /** Retries, without blocking the thread, while others hold the lock. */
  async #run<T>(action: (statements: Statements, now: number) => T): Promise<T> {
    const deadline = performance.now() + RETRY_MS;
    for (;;) {
      if (this.#closed) throw new CoordinationError('the coordination store is closed');
      try {
        return this.#file.run((statements) => action(statements, this.#clock()));
      } catch (error) {
        if (faultOf(error) !== 'busy' || performance.now() > deadline) {
          throw new CoordinationError(
            describeFault('coordination store', this.#path, error),
            error,
          );
        }
      }
      // Random, so that waiters do not stay in step.
      await new Promise<void>((resolve) => setTimeout(resolve, 1 + Math.random() * 20));
    }
  }

  #clean(statements: Statements, now: number): void {
    if (Math.abs(now - this.#cleanedAt) < CLEANING_INTERVAL_MS) return;
    this.#cleanedAt = now;
    statements.dropMembers.run(now);
    statements.dropCounters.run(now);
    statements.jobs.dropOld.run(now);
    statements.jobs.dropUnseen.run(now);
  }
}

/**
 * A new file starts with the time as its fence. Fences grow by one per change of owner, slower than time, so those of a
 * recreated file are always larger.
 */
function firstFence(now: number): number {
  return Math.max(1, Math.trunc(now));
}
