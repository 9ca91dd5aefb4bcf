import type {
  HeldJob,
  JobHolder,
  JobClaim,
  JobLease,
  JobLeases,
  TakenJob,
} from '../../../scheduler/coordination.ts';
import type { Statements } from './coordination-file.ts';
import { MAX_CLOCK_SKEW_MS } from './clock-skew.ts';

interface Row extends JobLease, JobHolder {
  readonly begins: number;
  readonly ends: number;
  readonly deadline: number;
  readonly losses: number;
}

type Each<T, R> = (statements: Statements, now: number, one: T) => R;

type Run = <T>(action: (statements: Statements, now: number) => T) => Promise<T>;

/** Leases of jobs. Each call is one transaction on the calling thread and takes ten microseconds per job. */
export class SqliteJobLeases implements JobLeases {
  readonly #run: Run;

  /** @param run runs a transaction of the coordination store */
  constructor(run: Run) {
    this.#run = run;
  }

  take(claims: readonly JobClaim[], ttl: number): Promise<readonly (TakenJob | HeldJob)[]> {
    return this.#forEach(claims, ({ jobs }, now, { job, lease, holder, limit }) => {
      const { worker, agent, run } = holder;
      const values = [job, lease, worker, agent, run, now, now + ttl, now + limit] as const;
      const taken = jobs.take.get(...values);
      if (taken !== undefined) return { taken: true, losses: Number(taken['losses']) };
      return heldJob(jobs.get.get(job), now);
    });
  }

  renew(leases: readonly JobLease[], ttl: number): Promise<readonly (JobHolder | null)[]> {
    return this.#forEach(leases, ({ jobs }, now, { job, lease }) =>
      holderIn(jobs.renew.get(job, lease, now, now + ttl)),
    );
  }

  check(leases: readonly JobLease[]): Promise<readonly (JobHolder | null)[]> {
    return this.#readEach(leases, ({ jobs }, now, { job, lease }) =>
      holderIn(jobs.check.get(job, lease, now)),
    );
  }

  async drop(leases: readonly JobLease[]): Promise<void> {
    await this.#forEach(leases, ({ jobs }, _now, { job, lease }) => jobs.drop.run(job, lease));
  }

  look(wanted: readonly string[]): Promise<readonly (HeldJob | null)[]> {
    return this.#readEach(wanted, ({ jobs }, now, job) => {
      const row = jobs.get.get(job);
      return row === undefined ? null : heldJob(row, now);
    });
  }

  all(): Promise<readonly HeldJob[]> {
    return this.#run(({ jobs }, now) =>
      (jobs.all.all() as unknown as Row[]).map((row) => heldJob(row, now)),
    );
  }

  async see(workers: readonly string[]): Promise<void> {
    await this.#forEach(workers, ({ jobs }, now, id) => jobs.see.run(id, now));
  }

  seen(): Promise<ReadonlyMap<string, number>> {
    return this.#run(({ jobs }, now) => {
      const rows = jobs.seen.all(now) as { id: string; seen: number }[];
      return new Map(rows.map(({ id, seen }) => [id, now - seen]));
    });
  }

  /** One transaction covers all jobs. */
  #forEach<T, R>(all: readonly T[], each: Each<T, R>): Promise<readonly R[]> {
    return this.#run((statements, now) =>
      statements.atOnce(() => all.map((one) => each(statements, now, one))),
    );
  }

  #readEach<T, R>(all: readonly T[], each: Each<T, R>): Promise<readonly R[]> {
    return this.#run((statements, now) =>
      statements.readAtOnce(() => all.map((one) => each(statements, now, one))),
    );
  }
}

function holderIn(row: Readonly<Record<string, unknown>> | undefined): JobHolder | null {
  if (row === undefined) return null;
  const { worker, agent, run } = row;
  return { worker: String(worker), agent: String(agent), run: String(run) };
}

function heldJob(row: Row, now: number): HeldJob {
  const { job, lease, worker, agent, run, begins, ends, deadline, losses } = row;
  // The clock has been set back.
  const isAhead = begins > now + MAX_CLOCK_SKEW_MS;
  const remaining = isAhead ? 0 : Math.min(ends, deadline) - now;
  const timedOut = !isAhead && remaining <= 0 && deadline < ends;
  const holder = { worker, agent, run };
  return { taken: false, job, lease, holder, remaining, timedOut, losses };
}
