import { BackOff } from './back-off.ts';
import {
  isInvalid,
  isRefusal,
  type HandedJob,
  type JobService,
  type LogLevel,
  type LogLine,
} from './job-service.ts';
import type { LeaseTimes } from './registration.ts';
import { JobInterruptedError, messageOf } from './tool-errors.ts';
import type { WorkerLog } from './worker-log.ts';

/** A job, as a tool sees it. Its functions can be detached: `const { log } = job`. */
export interface Job {
  readonly id: string;
  readonly runId: string;
  readonly taskId: string;
  /** The step's id. */
  readonly step: string;
  readonly tool: string;
  /** The same for all tries of the step and for all workers that get it. */
  readonly idempotencyKey: string;
  /** The number of this try of the step, from 1. A lost worker does not count as a try. */
  readonly attempt: number;
  /** When the try times out, by the step's `timeout_seconds` and this machine's clock. */
  readonly deadline: Date;
  /** W3C trace context of the run, if it is traced. */
  readonly traceparent: string | null;
  /** Aborts once the job should stop; its reason is a {@link JobInterruptedError}. */
  readonly signal: AbortSignal;
  /** Adds a line to the run's log, readable at once. The service keeps 50 lines of a step. Level: `info`. */
  readonly log: (message: string, level?: LogLevel) => void;
  /** Reports the progress, from 0 to 1. @throws RangeError */
  readonly progress: (fraction: number) => void;
}

/** Lines and progress are sent together, once in this many milliseconds. */
const BATCH_DELAY_MS = 100;
/** The most lines in a heartbeat. */
const MAX_LINES = 100;
/** The most unsent lines of a job. The service keeps fewer. */
const MAX_UNSENT = 1_000;
/** The longest timer in JavaScript. Milliseconds. */
const MAX_TIMER = 2 ** 31 - 1;

/** The state of a job. `lapsed`: no heartbeat was answered for the length of a lease. */
export type Holding = 'held' | 'lapsed' | 'refused' | 'canceled' | 'left';

/** A job that this worker has and keeps by sending heartbeats. */
export class LeasedJob {
  /** The job, as passed to the tool. */
  readonly job: Job;
  readonly handed: HandedJob;
  readonly #service: JobService;
  readonly #log: WorkerLog;
  readonly #lease: LeaseTimes;
  readonly #abort = new AbortController();
  readonly #backOff = new BackOff();
  readonly #deadline: NodeJS.Timeout | undefined;
  #holding: Holding = 'held';
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires, on the steady clock. */
  #due = Infinity;
  #isBeating = false;
  /** Whether the last heartbeat got no response. */
  #isFailing = false;
  #lines: LogLine[] = [];
  #progress: number | undefined;
  /** When the last heartbeat that got a response was sent. */
  #keptAt = performance.now();
  #told: (() => void)[] = [];

  constructor(
    handed: HandedJob,
    parts: {
      readonly service: JobService;
      readonly log: WorkerLog;
      readonly lease: LeaseTimes;
      /** Milliseconds that this machine's clock is ahead of the service's. */
      readonly ahead: number;
    },
  ) {
    this.handed = handed;
    this.#service = parts.service;
    this.#log = parts.log;
    this.#lease = parts.lease;
    const abort = this.#abort;
    const deadline = new Date(Date.parse(handed.deadline) + parts.ahead);
    this.job = {
      id: handed.job_id,
      runId: handed.run_id,
      taskId: handed.task_id,
      step: handed.step,
      tool: handed.tool,
      idempotencyKey: handed.idempotency_key,
      attempt: handed.attempt,
      deadline,
      traceparent: handed.traceparent,
      // Made on first use, because it costs more than the rest of a short job.
      get signal() {
        return abort.signal;
      },
      log: (message, level = 'info') => this.#addLine(message, level),
      progress: (fraction) => this.#setProgress(fraction),
    };
    this.#deadline = this.#abortAt(deadline.getTime() - Date.now());
    this.#schedule(this.#lease.beat);
  }

  get holding(): Holding {
    return this.#holding;
  }

  /** The fields that identify the job in the worker's log. */
  get fields(): Readonly<Record<string, unknown>> {
    const { job_id: job, run_id: run, step, tool } = this.handed;
    return { job, run, step, tool };
  }

  /** Resolves once all lines and the progress were sent, or the lease is over. */
  async flush(): Promise<void> {
    while (this.#holding === 'held' && this.#hasNews()) {
      const told = new Promise<void>((resolve) => this.#told.push(resolve));
      this.#soon(0);
      await told;
    }
  }

  /** Ends the heartbeats, because the job is over for this worker. */
  release(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#deadline);
    if (this.#holding === 'held') this.#holding = 'left';
    for (const tell of this.#told.splice(0)) tell();
  }

  /** Leaves the job to another worker. That worker gets the job once the lease has expired. */
  abandon(): void {
    this.#end('left', new JobInterruptedError('worker_stopped', 'the worker stopped'));
  }

  #abortAt(left: number): NodeJS.Timeout | undefined {
    if (left > MAX_TIMER) return undefined;
    const timeOut = (): void => {
      const message = 'the step has timed out (timeout_seconds)';
      this.#abort.abort(new JobInterruptedError('deadline', message));
    };
    return setTimeout(timeOut, left);
  }

  #end(holding: Exclude<Holding, 'held'>, reason: JobInterruptedError): void {
    if (this.#holding !== 'held') return;
    this.#holding = holding;
    this.release();
    this.#abort.abort(reason);
  }

  #hasNews(): boolean {
    return this.#lines.length > 0 || this.#progress !== undefined;
  }

  #addLine(message: string, level: LogLevel): void {
    if (this.#holding !== 'held' || this.#lines.length >= MAX_UNSENT) return;
    this.#lines.push({ level, message: String(message), at: new Date().toISOString() });
    this.#soon(BATCH_DELAY_MS);
  }

  #setProgress(fraction: number): void {
    if (!(fraction >= 0 && fraction <= 1)) {
      throw new RangeError(`progress must be a number from 0 to 1, got ${fraction}`);
    }
    this.#progress = fraction;
    this.#soon(BATCH_DELAY_MS);
  }

  /** Like {@link #schedule}, but does nothing after a failure, because the next try then comes soon enough. */
  #soon(after: number): void {
    if (!this.#isFailing) this.#schedule(after);
  }

  /** Sends a heartbeat after a number of milliseconds, unless one is due earlier. */
  #schedule(after: number): void {
    const due = performance.now() + after;
    if (this.#holding !== 'held' || this.#isBeating || this.#due <= due) return;
    clearTimeout(this.#timer);
    this.#due = due;
    this.#timer = setTimeout(() => void this.#beat(), after);
  }

  /** Never rejects. */
  async #beat(): Promise<void> {
    this.#isBeating = true;
    this.#due = Infinity;
    const log = this.#lines.slice(0, MAX_LINES);
    const progress = this.#progress;
    const sentAt = performance.now();
    let next = this.#lease.beat;
    try {
      const report = { progress, ...(log.length === 0 ? {} : { log }) };
      const { cancel_requested } = await this.#service.heartbeat(this.handed, report);
      this.#keptAt = sentAt;
      this.#backOff.reset();
      this.#isFailing = false;
      this.#sent(log, progress);
      if (cancel_requested) {
        this.#end('canceled', new JobInterruptedError('canceled', 'the job is no longer wanted'));
      }
    } catch (error) {
      next = this.#failed(error);
      if (isInvalid(error)) this.#sent(log, progress);
    }
    this.#isBeating = false;
    this.#schedule(this.#hasNews() && !this.#isFailing ? BATCH_DELAY_MS : next);
    for (const tell of this.#told.splice(0)) tell();
  }

  #sent(log: readonly LogLine[], progress: number | undefined): void {
    this.#lines.splice(0, log.length);
    if (this.#progress === progress) this.#progress = undefined;
  }

  /** @returns milliseconds until the next try */
  #failed(error: unknown): number {
    const fields = { ...this.fields, error: messageOf(error) };
    if (isRefusal(error)) {
      this.#log('warn', 'lost a job: its lease is over', fields);
      this.#end(
        'refused',
        new JobInterruptedError('lease_lost', `the lease is over: ${error.message}`),
      );
      return 0;
    }
    if (isInvalid(error)) {
      this.#log('warn', 'the service rejected progress or log lines of a job', fields);
      return this.#lease.beat;
    }
    this.#isFailing = true;
    const after = this.#backOff.next(error);
    const left = this.#keptAt + this.#lease.length - performance.now();
    if (left > 0) return Math.min(after, left);
    this.#log('warn', 'lost a job: could not keep its lease', fields);
    const silence = 'no heartbeat was answered for the length of the lease';
    this.#end('lapsed', new JobInterruptedError('lease_lost', silence));
    return 0;
  }
}
