import type { ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import type { Clock } from '../../domain/clock.ts';
import type { EventStore } from '../../domain/event-store.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import type { JsonObject } from '../../domain/json.ts';
import { pipelineSecrets, type SecretValues } from '../../domain/pipeline/pipeline-secrets.ts';
import type { Secrets } from '../../domain/pipeline/secrets.ts';
import { requireRun, runFold } from '../../domain/runs/run.ts';
import { isOpen, type Wait } from '../../domain/runs/run-waits.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { WorkerDirectory } from '../../projections/reading/worker-directory.ts';
import type { Coordination, HeldJob, JobLease } from '../coordination.ts';
import type { Party } from '../fairness/fair-queue.ts';
import { neverHeld, type HoldView } from '../hold.ts';
import { anyOwner, type Owners } from '../owners/owners.ts';
import type { PinnedTasks } from '../pinned-tasks.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import { RunAppender } from '../waits/run-appender.ts';
import { JobAnswers, type JobAnswer, type JobReport, type Sender } from './job-answers.ts';
import { JobBroker } from './job-broker.ts';
import { JobDetails } from './job-details.ts';
import type { HandedJob, Offer } from './job.ts';
import { waitingReason } from './waiting-reason.ts';
import { WorkerSightings } from './worker-sightings.ts';

/** A worker counts as silent after this many lengths of a lease. */
export const SILENT_LEASES = 2;

export interface JobsOptions {
  readonly store: EventStore;
  readonly coordination: Pick<Coordination, 'jobs'>;
  readonly queue: RunQueue;
  readonly tasks: Pick<PinnedTasks, 'peek' | 'at'>;
  readonly directory: WorkerDirectory;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  readonly hold?: HoldView & { onChange?(listener: () => void): void };
  /** How long a silent worker keeps a job. Seconds. */
  readonly leaseSeconds: number;
  /** Values to mask. */
  readonly secrets: SecretValues;
  /** Stores large results. Default: they are cut. */
  readonly artifacts?: ArtifactKeeping | undefined;
  /** A namespace's share of the jobs. Default: 1 for each. */
  readonly weightOf?: (namespace: string) => number;
  /** Decides whose workers may have jobs. Default: everybody's. */
  readonly owners?: Owners | undefined;
  /** Called before the first use, from which on the queue must follow the log. */
  readonly begin: () => void;
}

/** The jobs of workers, as the HTTP interface uses them. */
export class Jobs {
  readonly #options: JobsOptions;
  readonly #broker: JobBroker;
  readonly #answers: JobAnswers;
  readonly #sightings: WorkerSightings;
  #hasBegun = false;

  constructor(options: JobsOptions) {
    const { store, coordination, queue, directory, clock, telemetry, hold, artifacts } = options;
    const { owners = anyOwner } = options;
    this.#options = options;
    const leases = coordination.jobs;
    const ttl = options.leaseSeconds * 1000;
    const details = new JobDetails(store, queue);
    const appender = new RunAppender({ store, queue });
    const isActive = (id: string): boolean => {
      const worker = directory.find(id);
      if (worker === null || worker === 'replaced' || worker.state !== 'active') return false;
      return !owners.isDisabled(worker.agent_id);
    };
    const shared = { store, queue, leases, details, clock, telemetry, ttl };
    this.#broker = new JobBroker({
      ...shared,
      ...(hold === undefined ? {} : { hold }),
      weightOf: options.weightOf,
      isActive,
      failTry: (job, error) => this.#answers.failTry(job, error),
    });
    const { index } = this.#broker;
    const secretsOf = (runId: string): Promise<Secrets> => this.#secretsOf(runId);
    this.#answers = new JobAnswers({ ...shared, appender, index, secretsOf, artifacts });
    this.#sightings = new WorkerSightings(leases, clock, telemetry);
    directory.subscribe({ onWorker: () => this.#broker.workersChanged() });
    owners.onChange(() => this.#broker.workersChanged());
    hold?.onChange?.(() => this.#broker.holdChanged());
  }

  /** The open jobs that this process follows. */
  get size(): number {
    return this.#broker.index.size;
  }

  /** How many unfinished runs an agent and its namespace have; null while this process does not know. */
  unfinishedRuns(party: Party): ReturnType<RunQueue['countOf']> | null {
    this.#begin();
    const { queue } = this.#options;
    return queue.isCurrent ? queue.countOf(party) : null;
  }

  /** The number of workers' requests that wait for jobs. */
  get waiting(): number {
    return this.#broker.waitingCount;
  }

  /** @throws CoordinationError, EventStoreError; no job was taken then. See `JobBroker.poll` */
  async poll(
    worker: Offer,
    most: number,
    seconds: number,
    signal: AbortSignal,
  ): Promise<readonly HandedJob[]> {
    this.#begin();
    const waited = this.#sightings.wait(worker.id);
    try {
      return await this.#broker.poll(worker, most, seconds, signal);
    } finally {
      waited();
    }
  }

  /** See `JobAnswers.finish`. */
  finish(
    answers: readonly JobAnswer[],
    sender: Sender,
    context: CommandContext,
  ): ReturnType<JobAnswers['finish']> {
    this.#begin();
    return this.#answers.finish(answers, sender, context);
  }

  /** See `JobAnswers.heartbeat`. */
  async heartbeat(
    lease: JobLease,
    report: JobReport,
    sender: Sender,
    context: CommandContext,
  ): Promise<{ readonly cancel_requested: boolean }> {
    this.#begin();
    const { isUnwanted, worker } = await this.#answers.heartbeat(lease, report, sender, context);
    this.#sightings.note(worker);
    return { cancel_requested: isUnwanted };
  }

  /** Notes that a worker was heard of, although it requests nothing yet. */
  note(workerId: string): void {
    this.#sightings.note(workerId);
  }

  /** The valid leases, and how many milliseconds ago each worker was heard of. @throws CoordinationError */
  async present(): Promise<{
    readonly held: readonly HeldJob[];
    readonly ago: ReadonlyMap<string, number>;
  }> {
    const [all, ago] = await Promise.all([
      this.#options.coordination.jobs.all(),
      this.#sightings.ago(),
    ]);
    return { held: all.filter(({ remaining }) => remaining > 0), ago };
  }

  /**
   * Why each open job of a run is still waiting, by the wait's id. Empty while the coordination store is unavailable.
   */
  async reasons(namespace: string, waits: readonly Wait[]): Promise<ReadonlyMap<string, string>> {
    const {
      coordination,
      directory,
      clock,
      hold = neverHeld,
      leaseSeconds,
      telemetry,
    } = this.#options;
    const open = waits.filter((wait) => wait.waits_for.kind === 'job' && isOpen(wait));
    if (open.length === 0) return new Map();
    const found = await Promise.all([
      coordination.jobs.look(open.map(({ wait_id }) => wait_id)),
      this.#sightings.ago(),
    ]).catch((error: unknown) => {
      telemetry.failures.failed('could not find out why jobs wait', error);
      return null;
    });
    if (found === null) return new Map();
    const [held, ago] = found;
    const silentAfter = SILENT_LEASES * leaseSeconds * 1000;
    const known = {
      workers: [...directory.workers()],
      isHeard: (id: string) => (ago.get(id) ?? Infinity) <= silentAfter,
      held: hold.held,
      now: clock.now(),
    };
    const reasons = new Map<string, string>();
    for (const [index, { wait_id, waits_for }] of open.entries()) {
      if (waits_for.kind !== 'job') continue;
      const lease = held[index] ?? null;
      const holder = lease !== null && lease.remaining > 0 ? lease.holder.worker : null;
      const { tool, labels } = waits_for;
      const job = this.#broker.index.get(wait_id);
      reasons.set(wait_id, waitingReason({ namespace, tool, labels, job, holder }, known));
    }
    return reasons;
  }

  stop(): void {
    this.#broker.index.stop();
    this.#sightings.stop();
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    const { begin, coordination, telemetry } = this.#options;
    begin();
    coordination.jobs.all().then(
      (held) => this.#broker.learn(held),
      (error: unknown) => telemetry.failures.failed('could not read the leases of jobs', error),
    );
  }

  /** The secrets of the task revision that a run is pinned to. */
  async #secretsOf(runId: string): Promise<Secrets> {
    const { queue, tasks, store, secrets } = this.#options;
    const queued = queue.get(runId);
    const [taskId, revision] =
      queued === undefined
        ? await pinnedOf(store, runId)
        : ([queued.taskId, queued.taskRevision] as const);
    const task = tasks.peek(taskId, revision) ?? (await tasks.at(taskId, revision));
    const payload = task.definition.payload as JsonObject;
    return pipelineSecrets(payload, task.namespace, secrets);
  }
}

async function pinnedOf(store: EventStore, runId: string): Promise<readonly [string, number]> {
  const { state } = await load(store, streams.run(runId), runFold);
  const { task_id, task_revision } = requireRun(state).request;
  return [task_id, task_revision];
}
