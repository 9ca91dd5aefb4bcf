import type { JsonObject } from '../domain/json.ts';

/**
 * The coordination port: the state that processes share about the present. The state may be lost: that costs work, but
 * no facts. There are two adapters (`stores/sqlite`, `stores/mongodb`) and one contract suite
 * (`test/contracts/coordination.ts`).
 *
 * The store's clock counts, so processes need not agree on the time. If that clock is set back, entries written more
 * than a second in the future have expired. In a sharded MongoDB cluster, with several clocks, the tolerance is the
 * entry's own lifetime.
 */
export interface Coordination {
  /**
   * Takes or renews a lease. The owner keeps its fence. After expiry or release another owner gets a larger fence.
   * @param ttl milliseconds
   * @returns null while another owner has it
   */
  acquire(name: string, owner: string, ttl: number): Promise<Lease | null>;

  /** Releases a lease, if the owner has it. */
  release(name: string, owner: string): Promise<void>;

  /** Marks a process as alive for `ttl` milliseconds. */
  heartbeat(id: string, about: JsonObject, ttl: number): Promise<void>;

  /** Removes a process before its heartbeat expires. */
  forget(id: string): Promise<void>;

  /** The live processes, ordered by id. */
  alive(): Promise<readonly LiveMember[]>;

  /**
   * Adds to a shared counter, which restarts with each window.
   * @param window milliseconds; windows begin at multiples of it
   * @returns the new sum, and the milliseconds left in the window
   */
  count(
    name: string,
    by: number,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number }>;

  /** Reads a shared counter without writing; null if nothing was added in this window. */
  readCount(
    name: string,
    window: number,
  ): Promise<{ readonly sum: number; readonly remaining: number } | null>;

  /** A remembered position or other short string; null if there is none. */
  recall(name: string): Promise<string | null>;

  /** Stores a value. @returns false if a larger fence was used for this name before */
  remember(name: string, value: string, fence: number): Promise<boolean>;

  /** The leases of jobs, and the times when their workers were last seen. */
  readonly jobs: JobLeases;

  /** Resolves if the store responds within two seconds. @throws CoordinationError */
  ping(): Promise<void>;

  close(): Promise<void>;
}

/**
 * Which worker has a job, and until when. A lease lasts for `ttl` after it was taken or renewed, and at most until the
 * job's limit. If it was still being renewed at the limit, it has timed out. Otherwise it was lost, and the job is free
 * again. All results are in the order of the arguments.
 */
export interface JobLeases {
  /**
   * Leases each job that is free.
   * @param ttl milliseconds
   * @returns for each job: how often its lease was lost before, or the existing lease
   */
  take(claims: readonly JobClaim[], ttl: number): Promise<readonly (TakenJob | HeldJob)[]>;

  /** Renews valid leases. @returns for each lease its holder; null if it is not the job's lease or is over */
  renew(leases: readonly JobLease[], ttl: number): Promise<readonly (JobHolder | null)[]>;

  /** The holder of each lease; null if it is not the job's lease or is over. */
  check(leases: readonly JobLease[]): Promise<readonly (JobHolder | null)[]>;

  /** Ends leases, if they are the jobs' leases. */
  drop(leases: readonly JobLease[]): Promise<void>;

  /** The latest lease of each job, even if it is over; null if there is none. */
  look(jobs: readonly string[]): Promise<readonly (HeldJob | null)[]>;

  /** All leases, including some that are over. */
  all(): Promise<readonly HeldJob[]>;

  /** Notes that workers were heard of just now. */
  see(workers: readonly string[]): Promise<void>;

  /** How many milliseconds ago each worker was heard of. Workers that are silent for more than two days are left out. */
  seen(): Promise<ReadonlyMap<string, number>>;
}

/** A lease is an opaque string that nobody can guess. */
export interface JobLease {
  readonly job: string;
  readonly lease: string;
}

/** The worker that has a job, its agent, and the job's run. */
export interface JobHolder {
  readonly worker: string;
  readonly agent: string;
  readonly run: string;
}

export interface JobClaim extends JobLease {
  readonly holder: JobHolder;
  /** The most milliseconds that the worker has for the job. */
  readonly limit: number;
}

export interface TakenJob {
  readonly taken: true;
  /** How often a lease of this job was lost before. */
  readonly losses: number;
}

/** The present state of a job's lease. */
export interface HeldJob extends JobLease {
  readonly taken: false;
  readonly holder: JobHolder;
  /** Milliseconds until it ends; 0 or less: it is over. */
  readonly remaining: number;
  /** Whether it ended at the job's limit, rather than because its worker was silent. */
  readonly timedOut: boolean;
  readonly losses: number;
}

export interface Lease {
  /** Increases with each change of owner. */
  readonly fence: number;
  /** Milliseconds left. */
  readonly remaining: number;
}

export interface LiveMember {
  readonly id: string;
  readonly about: JsonObject;
  /** Milliseconds until it counts as gone. */
  readonly remaining: number;
}

/** The coordination store is unavailable. */
export class CoordinationError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'CoordinationError';
  }
}
