import { keptResult, type ArtifactKeeping } from '../../domain/artifacts/keep-result.ts';
import { toIso, type Clock } from '../../domain/clock.ts';
import { RefusalError, notFound } from '../../domain/errors.ts';
import type { EventStore } from '../../domain/event-store.ts';
import type { DataOf } from '../../domain/events/catalogue.ts';
import { load, type CommandContext } from '../../domain/handle.ts';
import { isUuid, timeBasedId } from '../../domain/ids.ts';
import {
  limitMembers,
  jsonBytes,
  toPlainJson,
  truncateString,
} from '../../domain/pipeline/json-size.ts';
import type { Secrets } from '../../domain/pipeline/secrets.ts';
import { resumeStep, type Resumption, type Wait } from '../../domain/runs/run-waits.ts';
import { withMaskedReason } from '../../domain/runs/wait-commands.ts';
import { runFold } from '../../domain/runs/run.ts';
import { streams } from '../../domain/streams.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { JobHolder, JobLease, JobLeases } from '../coordination.ts';
import type { RunQueue } from '../runs/run-queue.ts';
import type { RunAppender } from '../waits/run-appender.ts';
import { boundedLog, MAX_LOG_LINES, type SentLine } from './job-log.ts';
import type { Job } from './job.ts';
import type { JobDetails } from './job-details.ts';
import type { JobIndex } from './job-index.ts';

/** The most characters of an error. */
const MAX_ERROR_LENGTH = 4000;

/** How a job ended, as reported by its worker. */
export type JobAnswer = { readonly job: string; readonly lease: string } & (
  | { readonly result: unknown }
  | { readonly error: string; readonly retryable: boolean }
);

/** A worker's report about a job that it continues. */
export interface JobReport {
  /** The progress, from 0 to 1. */
  readonly progress?: number | undefined;
  readonly log?: readonly SentLine[] | undefined;
}

/** The agent that reports about its jobs. */
export interface Sender {
  readonly agentId: string;
  readonly namespace: string;
}

export interface AnswerParts {
  readonly store: EventStore;
  readonly queue: RunQueue;
  readonly leases: JobLeases;
  readonly appender: RunAppender;
  readonly details: JobDetails;
  readonly index: JobIndex;
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** How long a silent worker keeps a job. Milliseconds. */
  readonly ttl: number;
  /** The secrets of a run's task, which are masked. */
  readonly secretsOf: (runId: string) => Promise<Secrets>;
  /** Stores large results. Default: they are cut. */
  readonly artifacts?: ArtifactKeeping | undefined;
}

/** Handles the reports of workers about their jobs: heartbeats, progress and results. */
export class JobAnswers {
  readonly #parts: AnswerParts;

  constructor(parts: AnswerParts) {
    this.#parts = parts;
  }

  /**
   * Ends jobs, each only once, as decided by the append to its run. Each job has its own outcome.
   * @returns for each job: null, or a RefusalError `STATE_CONFLICT` for a lease that is not the present one or a wait
   *   that is over, `NOT_FOUND` for a job that never existed in the sender's namespace
   * @throws CoordinationError; EventStoreError, ArtifactError when a run or a result could not be written; some jobs
   *   may have ended nevertheless
   */
  async finish(
    answers: readonly JobAnswer[],
    sender: Sender,
    context: CommandContext,
  ): Promise<readonly (RefusalError | null)[]> {
    const { leases } = this.#parts;
    const held = await leases.check(answers.map(({ job, lease }) => ({ job, lease })));
    const over: JobLease[] = [];
    const outcomes = await Promise.allSettled(
      answers.map(async (answer, index): Promise<RefusalError | null> => {
        const holder = held[index] ?? null;
        if (holder?.agent !== sender.agentId) return this.refusalOf(answer, sender);
        const refusal = await this.#resume(answer, holder, sender, context);
        over.push({ job: answer.job, lease: answer.lease });
        return refusal;
      }),
    );
    await leases.drop(over);
    return outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    });
  }

  /**
   * Extends the lease of a job, and records what its worker reports.
   * @returns whether the worker should stop, because its job is no longer wanted
   * @throws RefusalError as {@link finish}; CoordinationError, EventStoreError
   */
  async heartbeat(
    { job, lease }: JobLease,
    report: JobReport,
    sender: Sender,
    context: CommandContext,
  ): Promise<{ readonly isUnwanted: boolean; readonly worker: string }> {
    const { leases, ttl, index } = this.#parts;
    const [holder = null] = await leases.renew([{ job, lease }], ttl);
    if (holder?.agent !== sender.agentId) throw await this.refusalOf({ job, lease }, sender);
    const known = index.get(job);
    if (known !== undefined) index.leased(known, ttl);
    const isNews = report.progress !== undefined || (report.log?.length ?? 0) > 0;
    if (isNews) await this.#progress(job, holder, report, context);
    return { isUnwanted: await this.#isUnwanted(job, holder.run), worker: holder.worker };
  }

  /** Ends the try of a job whose worker did not report a result. */
  async failTry({ id, runId }: Pick<Job, 'id' | 'runId'>, error: string): Promise<void> {
    const { clock, appender, telemetry } = this.#parts;
    const now = clock.now();
    const commandId = timeBasedId(now, 'fail try', id);
    const source = 'jobs';
    const context = { commandId, actor: 'service', source, correlationId: runId, now };
    const resumption = { by: { kind: 'timeout' as const }, error, retryable: true };
    const decide = (waits: readonly Wait[]) =>
      isOpenIn(waits, id) ? [resumeStep(waits, id, resumption)] : [];
    const position = await appender.append(runId, { decide, context, size: error.length });
    if (position !== null) telemetry.count('jobs_ended_total', { outcome: 'timed_out' });
  }

  /** The error for a lease that is not the job's present lease. */
  async refusalOf({ job, lease }: JobLease, { namespace }: Sender): Promise<RefusalError> {
    if ((await this.#namespaceOf(job, lease)) !== namespace) return notFound('job', job);
    this.#parts.telemetry.count('job_answers_refused_total');
    const message = `job ${job} is not leased to you any more: its lease has expired, or the job is over`;
    return new RefusalError('STATE_CONFLICT', message, { job_id: job });
  }

  /** @returns the error for a job whose wait is over */
  async #resume(
    answer: JobAnswer,
    { worker, agent, run }: JobHolder,
    { namespace }: Sender,
    context: CommandContext,
  ): Promise<RefusalError | null> {
    const { appender, details, telemetry } = this.#parts;
    const { job } = answer;
    const by = { kind: 'job' as const, id: worker, agent_id: agent };
    const secrets = await this.#parts.secretsOf(run);
    const resumption = await this.#resumptionOf(answer, { id: run, namespace }, secrets, by);
    const commandId = timeBasedId(context.now, context.commandId, job);
    const size = 'result' in resumption ? jsonBytes(resumption.result) : 0;
    try {
      await appender.append(run, {
        decide: (waits) => [resumeStep(waits, job, resumption)],
        context: { ...withMaskedReason(context, secrets), commandId },
        size: size + 300,
      });
      details.forget(job);
      const outcome = 'error' in answer ? 'failed' : 'completed';
      telemetry.count('jobs_ended_total', { outcome });
      return null;
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      telemetry.count('job_answers_refused_total');
      const message = `job ${job} is over: ${error.message}`;
      return new RefusalError(error.code, message, { job_id: job, ...error.details });
    }
  }

  /** How a job's wait ends, masked and small enough for an event. @throws ArtifactError */
  async #resumptionOf(
    answer: JobAnswer,
    run: { readonly id: string; readonly namespace: string },
    secrets: Secrets,
    by: Resumption['by'],
  ): Promise<Resumption> {
    if ('error' in answer) {
      const error = truncateString(secrets.maskText(answer.error), MAX_ERROR_LENGTH);
      return { by, error, retryable: answer.retryable };
    }
    const plain = toPlainJson(secrets.mask(limitMembers(answer.result)));
    try {
      return { by, result: (await keptResult(this.#parts.artifacts, run, plain)).value };
    } catch (error) {
      if (!(error instanceof RefusalError)) throw error;
      // The quota of artifacts is used up. The worker has done the job, so a retry would not help.
      const why = `its result is too large for the log, and ${error.message}`;
      return { by, error: why, retryable: false };
    }
  }

  async #progress(
    job: string,
    { run }: JobHolder,
    report: JobReport,
    context: CommandContext,
  ): Promise<void> {
    const { appender } = this.#parts;
    const secrets = await this.#parts.secretsOf(run);
    const decide = (waits: readonly Wait[]) => {
      const wait = waits.find(({ wait_id, resumed }) => wait_id === job && resumed === null);
      if (wait === undefined) return [];
      const { step, logged = 0 } = wait;
      const now = toIso(context.now);
      const log = boundedLog(report.log ?? [], {
        secrets,
        step,
        now,
        left: MAX_LOG_LINES - logged,
      });
      if (report.progress === undefined && log.length === 0) return [];
      const data: DataOf<'RunStepProgressed'> = {
        step,
        wait_id: job,
        ...(report.progress === undefined ? {} : { progress: report.progress }),
        ...(log.length === 0 ? {} : { log }),
      };
      return [{ type: 'RunStepProgressed' as const, data }];
    };
    const size = jsonBytes(report.log ?? []) + 300;
    await appender.append(run, { decide, context: withMaskedReason(context, secrets), size });
  }

  async #isUnwanted(job: string, runId: string): Promise<boolean> {
    const { queue, store } = this.#parts;
    const run = queue.get(runId);
    if (run !== undefined && isOpenIn(run.waits, job)) return run.cancelRequested;
    // The queue may be behind the log.
    const { state } = await load(store, streams.run(runId), runFold);
    return !('request' in state) || state.cancel_requested || !isOpenIn(state.waits, job);
  }

  /**
   * The namespace of any job that ever existed, from this process, a store, or the run that the lease names. null if
   * there was no such job.
   */
  async #namespaceOf(job: string, lease: string): Promise<string | null> {
    const { index, leases, details } = this.#parts;
    const known = index.namespaceOf(job);
    if (known !== undefined) return known;
    const [named = ''] = lease.split('.', 1);
    if (isUuid(named) && (await details.of({ id: job, runId: named })) !== null) {
      return this.#namespaceOfRun(named);
    }
    const [row = null] = await leases.look([job]);
    return row === null ? null : this.#namespaceOfRun(row.holder.run);
  }

  async #namespaceOfRun(runId: string): Promise<string | null> {
    const { queue, store } = this.#parts;
    const known = queue.get(runId);
    if (known !== undefined) return known.namespace;
    const { state } = await load(store, streams.run(runId), runFold);
    return 'request' in state ? state.request.namespace : null;
  }
}

function isOpenIn(waits: readonly Wait[], id: string): boolean {
  return waits.some(({ wait_id, resumed }) => wait_id === id && resumed === null);
}
