import { randomUUID } from 'node:crypto';
import { toIso, type Cancel, type Clock } from '../../domain/clock.ts';
import { argumentCheck } from '../../domain/pipeline/arguments.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { HeldJob, JobLeases } from '../coordination.ts';
import { toolKey } from '../../projections/views/workers.ts';
import { neverHeld, type HoldView } from '../hold.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { Details, JobDetails } from './job-details.ts';
import { JobIndex } from './job-index.ts';
import type { HandedJob, Job, Offer } from './job.ts';

/** The messages that report failures. */
const NOT_LOOKED = 'could not check the leases of jobs; retrying';
const NOT_ENDED = 'could not end the try of a job; retrying';

/** A job fails if its leases were lost more often than this. Otherwise, it could crash one worker after the other. */
const MAX_LOSSES = 5;

/** Milliseconds before a lease is checked again after a failure of a store. */
const RETRY_AFTER = 1000;

export interface BrokerOptions {
  readonly queue: RunQueue;
  readonly leases: JobLeases;
  readonly details: JobDetails;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly hold?: HoldView;
  /** A namespace's share of the jobs, 1 or more. Default: 1 for each. */
  readonly weightOf?: ((namespace: string) => number) | undefined;
  /** How long a silent worker keeps a job. Milliseconds. */
  readonly ttl: number;
  /** Whether a worker may have jobs. */
  readonly isActive: (workerId: string) => boolean;
  /**
   * Ends the try of a job because its worker took too long, or too many workers were lost. Rejects if the end was not
   * written.
   */
  readonly failTry: (job: Job, error: string) => Promise<void>;
}

/** A worker that waits for jobs. */
interface Waiting {
  readonly worker: Offer;
  readonly most: number;
  /** Gives it jobs, or wakes it without a job. */
  readonly give: (jobs: readonly Job[]) => void;
}

/** Gives the open jobs to the workers that ask for them. */
export class JobBroker {
  readonly index: JobIndex;
  readonly #options: BrokerOptions;
  readonly #hold: HoldView;
  /** Waiting workers by tool of a namespace, longest wait first. */
  readonly #waiting = new Map<string, Set<Waiting>>();
  /** Tools whose jobs became free. */
  readonly #fresh = new Set<string>();
  #waitingCount = 0;
  #isMatching = false;

  constructor(options: BrokerOptions) {
    this.#options = options;
    this.#hold = options.hold ?? neverHeld;
    const listener = {
      onFree: ({ namespace, tool }: Job) => this.#match(toolKey(namespace, tool)),
      onLookDue: (jobs: readonly Job[]) => void this.#look(jobs),
    };
    this.index = new JobIndex(options.queue, options.clock, listener, options.weightOf);
  }

  /**
   * The next jobs that fit a worker. The list is empty if none becomes free in time, the worker is drained or replaced,
   * or its client has left.
   * @throws CoordinationError, EventStoreError; no job was taken then
   */
  async poll(
    worker: Offer,
    most: number,
    seconds: number,
    signal: AbortSignal,
  ): Promise<readonly HandedJob[]> {
    const { clock, isActive } = this.#options;
    const end = clock.steady() + seconds * 1000;
    let jobs = this.#mayPick(worker) ? this.index.pick(worker, most) : [];
    for (;;) {
      const handed = await this.#hand(worker, jobs, signal);
      if (handed.length > 0 || signal.aborted || !isActive(worker.id)) return handed;
      jobs = this.#mayPick(worker) ? this.index.pick(worker, most) : [];
      if (jobs.length > 0) continue;
      const left = end - clock.steady();
      if (left <= 0) return [];
      jobs = await this.#wait(worker, most, left, signal);
    }
  }

  #mayPick({ id }: Offer): boolean {
    return !this.#hold.held && this.#options.isActive(id);
  }

  /** The number of requests that wait for jobs. */
  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** Wakes workers that are no longer active, so that their requests are answered. */
  workersChanged(): void {
    for (const some of [...this.#waiting.values()]) {
      for (const { worker, give } of [...some]) if (!this.#options.isActive(worker.id)) give([]);
    }
  }

  /** Notes that the hold has started or ended. */
  holdChanged(): void {
    for (const tool of this.#waiting.keys()) this.#match(tool);
  }

  /** Marks the leases that other processes gave, so that this process does not try to lease their jobs in vain. */
  learn(held: readonly HeldJob[]): void {
    for (const { job: id, remaining } of held) {
      const job = this.index.get(id);
      if (job?.state === 'free' && remaining > 0) this.index.leased(job, remaining);
    }
  }

  #wait(worker: Offer, most: number, left: number, signal: AbortSignal): Promise<readonly Job[]> {
    return new Promise((resolve) => {
      const tools = worker.tools.map(({ name }) => toolKey(worker.namespace, name));
      let cancel: Cancel = () => {};
      let isOver = false;
      const give = (jobs: readonly Job[]): void => {
        if (isOver) return;
        isOver = true;
        this.#waitingCount -= 1;
        cancel();
        signal.removeEventListener('abort', leave);
        for (const tool of tools) {
          const some = this.#waiting.get(tool);
          some?.delete(waiting);
          if (some?.size === 0) this.#waiting.delete(tool);
        }
        resolve(jobs);
      };
      const leave = (): void => give([]);
      const waiting = { worker, most, give };
      for (const tool of tools) {
        const some = this.#waiting.get(tool);
        if (some === undefined) this.#waiting.set(tool, new Set([waiting]));
        else some.add(waiting);
      }
      this.#waitingCount += 1;
      cancel = this.#options.clock.after(left, leave, { background: true });
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) leave();
    });
  }

  /** Jobs that become free in the same turn of the event loop go to workers together. */
  #match(tool: string): void {
    this.#fresh.add(tool);
    if (this.#isMatching) return;
    this.#isMatching = true;
    setImmediate(() => {
      this.#isMatching = false;
      const tools = [...this.#fresh];
      this.#fresh.clear();
      for (const each of tools) this.#matchTool(each);
    });
  }

  #matchTool(tool: string): void {
    if (this.#hold.held) return;
    for (const { worker, most, give } of [...(this.#waiting.get(tool) ?? [])]) {
      if (!this.#options.isActive(worker.id)) continue;
      if (!this.index.hasFreeOf(tool)) return;
      const jobs = this.index.pick(worker, most);
      if (jobs.length > 0) give(jobs);
    }
  }

  /** Leases jobs to a worker, and passes back those that it does not get. */
  async #hand(
    worker: Offer,
    jobs: readonly Job[],
    signal: AbortSignal,
  ): Promise<readonly HandedJob[]> {
    if (jobs.length === 0) return [];
    const { index } = this;
    const passBack = (some: readonly Job[]): void => some.forEach((job) => index.free(job));
    try {
      const fitting = await this.#fitting(worker, jobs);
      if (signal.aborted) {
        passBack(fitting.map(({ job }) => job));
        return [];
      }
      const handed = await this.#lease(worker, fitting);
      if (!signal.aborted) return handed;
      const taken = handed.map(({ job_id: job, lease }) => ({ job, lease }));
      await this.#options.leases.drop(taken);
      passBack(taken.flatMap(({ job }) => index.get(job) ?? []));
      return [];
    } catch (error) {
      for (const job of jobs) if (job.state === 'taking') index.leased(job, RETRY_AFTER);
      throw error;
    }
  }

  /** The jobs that are still open and whose arguments fit the worker's schemas. All others are passed back. */
  async #fitting(
    worker: Offer,
    jobs: readonly Job[],
  ): Promise<readonly { readonly job: Job; readonly details: Details }[]> {
    const schemas = new Map(worker.tools.map(({ name, schema }) => [name, schema]));
    const details = await Promise.all(jobs.map((job) => this.#options.details.of(job)));
    return jobs.flatMap((job, index) => {
      const found = details[index] ?? null;
      const schema = schemas.get(job.tool);
      if (found === null || !this.#isOpen(job)) {
        this.index.drop(job);
        return [];
      }
      if (schema === undefined || argumentCheck(schema)(found.arguments).length > 0) {
        if (schema !== undefined) (job.unfit ??= new Set()).add(schema);
        this.index.free(job);
        return [];
      }
      return [{ job, details: found }];
    });
  }

  /** Whether the queue still has the wait, as far as it knows. */
  #isOpen({ id, runId, state }: Job): boolean {
    const { queue } = this.#options;
    if (state === 'over') return false;
    if (!queue.isCurrent) return true;
    const waits = queue.get(runId)?.waits ?? [];
    return waits.some((wait) => wait.wait_id === id && wait.resumed === null);
  }

  async #lease(
    worker: Offer,
    fitting: readonly { readonly job: Job; readonly details: Details }[],
  ): Promise<readonly HandedJob[]> {
    if (fitting.length === 0) return [];
    const { leases, ttl, clock, telemetry } = this.#options;
    const claims = fitting.map(({ job: { id: job, runId: run, limit } }) => {
      const holder = { worker: worker.id, agent: worker.agent_id, run };
      return { job, lease: newLease(run), holder, limit };
    });
    const results = await leases.take(claims, ttl);
    const now = clock.now();
    const handed: HandedJob[] = [];
    const unwanted: { readonly job: string; readonly lease: string }[] = [];
    for (const [index, { job, details }] of fitting.entries()) {
      const [claim, result] = [claims[index], results[index]];
      if (claim === undefined || result === undefined) continue;
      if (!result.taken) {
        if (result.timedOut) void this.#fail(job, result);
        else this.index.leased(job, Math.max(1, result.remaining));
        continue;
      }
      if (result.losses > 0) {
        telemetry.count('job_leases_lost_total');
        const { id, runId: run, step, tool } = job;
        telemetry.log.warn('job lease expired, offered the job again', {
          job: id,
          run,
          step,
          tool,
        });
      }
      if (result.losses > MAX_LOSSES) {
        const error = `the job lost its worker ${result.losses} times`;
        void this.#fail(job, { ...claim, error });
      } else if (job.state === 'over') unwanted.push(claim);
      else {
        this.index.leased(job, Math.min(ttl, job.limit));
        handed.push(handedJob(job, claim.lease, details, now));
      }
    }
    if (handed.length > 0) telemetry.count('jobs_leased_total', {}, handed.length);
    await leases.drop(unwanted);
    return handed;
  }

  /** Checks whether leases are over. Never rejects. */
  async #look(jobs: readonly Job[]): Promise<void> {
    try {
      const held = await this.#options.leases.look(jobs.map(({ id }) => id));
      this.#options.telemetry.failures.worked(NOT_LOOKED);
      for (const [index, job] of jobs.entries()) {
        const lease = held[index] ?? null;
        if (lease === null) this.index.free(job);
        else if (lease.remaining > 0) this.index.leased(job, lease.remaining);
        else if (lease.timedOut) void this.#fail(job, lease);
        else this.index.free(job);
      }
    } catch (error) {
      this.#options.telemetry.failures.failed(NOT_LOOKED, error);
      for (const job of jobs) this.index.leased(job, RETRY_AFTER);
    }
  }

  /** Ends the try of a job. Never rejects. */
  async #fail(
    job: Job,
    held: { readonly job: string; readonly lease: string; readonly error?: string },
  ): Promise<void> {
    const { failTry, leases, telemetry } = this.#options;
    const timedOut = `timed out after ${job.limit / 1000} s (timeout_seconds)`;
    try {
      await failTry(job, held.error ?? timedOut);
      await leases.drop([held]);
      this.index.drop(job);
      telemetry.failures.worked(NOT_ENDED);
    } catch (error) {
      telemetry.failures.failed(NOT_ENDED, error, { job: job.id });
      this.index.leased(job, RETRY_AFTER);
    }
  }
}

/** Names the run, so that a late result can be told from one for a job that never existed. */
function newLease(runId: string): string {
  return `${runId}.${randomUUID()}`;
}

function handedJob(job: Job, lease: string, details: Details, now: number): HandedJob {
  const { id, runId, taskId, step, tool, tries, limit, until } = job;
  return {
    job_id: id,
    lease,
    run_id: runId,
    task_id: taskId,
    step,
    tool,
    arguments: details.arguments,
    idempotency_key: `${runId}:${step}`,
    attempt: tries,
    deadline: toIso(Math.min(now + limit, until)),
    traceparent: details.traceparent,
  };
}
