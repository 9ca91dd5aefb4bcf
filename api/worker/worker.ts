import { hostname } from 'node:os';
import { ApiError, ClientConnection } from '../client/client-connection.ts';
import { BackOff, pause } from './back-off.ts';
import { FailureLines } from './failure-lines.ts';
import { JobService, type HandedJob, type Offer } from './job-service.ts';
import { jsonResult } from './json-result.ts';
import { LeasedJob } from './leased-job.ts';
import { Registration } from './registration.ts';
import { ResultSender, type Ending } from './result-sender.ts';
import { ShutdownSignals } from './shutdown-signals.ts';
import { failureOf, messageOf } from './tool-errors.ts';
import { logToStderr, type WorkerLog } from './worker-log.ts';
import type { WorkerOptions } from './worker-options.ts';

export { JobInterruptedError, PermanentError, RetryableError } from './tool-errors.ts';
export type { Job } from './leased-job.ts';
export type { LogLevel } from './job-service.ts';
export type { WorkerLog } from './worker-log.ts';
export type { Tool, WorkerOptions } from './worker-options.ts';

/** For how many seconds a poll waits for a job. */
const POLL_SECONDS = 30;
/** The most jobs per poll. */
const MAX_JOBS = 100;
/** No further jobs are taken while this many results wait to be sent. */
const MAX_UNSENT = 1_000;
/**
 * The service should have waited at least this many milliseconds before an empty response. After a faster one, the next
 * poll is delayed to avoid a busy loop.
 */
const MIN_POLL_MS = 1_000;
/** How long the response to the last poll may take after the worker was drained. Milliseconds. */
const LAST_POLL_TIMEOUT_MS = 2_000;

/** Asks the service for jobs of its tools, does them, and reports their results. */
export class Worker {
  /** Resolves once the worker has stopped: by {@link stop}, a signal, or because it was drained or replaced. */
  readonly stopped: Promise<void>;
  readonly #options: WorkerOptions;
  readonly #slots: number;
  readonly #log: WorkerLog;
  readonly #failures: FailureLines;
  readonly #service: JobService;
  readonly #registration: Registration;
  readonly #results: ResultSender;
  readonly #jobs = new Set<LeasedJob>();
  /** Aborts when no more jobs are wanted. */
  readonly #stopping = new AbortController();
  /** Aborts when even a running poll is abandoned. */
  readonly #polling = new AbortController();
  readonly #signals: ShutdownSignals;
  #resolveStopped: () => void = () => {};
  #work: Promise<void> | null = null;
  #stop: Promise<void> | null = null;
  /** Whether the service gives it no more jobs. */
  #isDrained = false;
  /** The number of running tools. */
  #running = 0;
  /** Wakes the code that waits for a slot or for the last job. */
  #wake: (() => void)[] = [];

  constructor(options: WorkerOptions) {
    const { url, agentId, agentSecret, fetch, log = logToStderr, slots = 10 } = options;
    this.#options = options;
    this.#slots = slots;
    this.#log = log;
    this.#failures = new FailureLines(log, 'ask for jobs');
    const credentials = { agentId, ...(agentSecret === undefined ? {} : { agentSecret }) };
    const connection = new ClientConnection({
      baseUrl: url,
      credentials,
      ...(fetch === undefined ? {} : { fetch }),
    });
    const service = new JobService(connection);
    const stopping = this.#stopping.signal;
    const offer = offerOf(options, slots);
    const registration = new Registration({ service, offer, log, stopping });
    const onSettled = (): void => this.#changed();
    this.#service = service;
    this.#registration = registration;
    this.#results = new ResultSender({ service, log, registration, onSettled });
    this.#signals = new ShutdownSignals((signal) => this.#stopBySignal(signal));
    this.stopped = new Promise((resolve) => (this.#resolveStopped = resolve));
  }

  /** The worker's id; null before it is registered. */
  get id(): string | null {
    return this.#registration.id;
  }

  /**
   * Registers the worker and starts to take jobs. Waits while the service is unavailable.
   * @throws ApiError if the service rejects the credentials, the tools or other options
   */
  async start(): Promise<void> {
    if (this.#work !== null || this.#stop !== null) {
      throw new Error('a worker can only be started once; create another one');
    }
    if (this.#options.handleSignals === true) this.#signals.listen();
    const begun = this.#registration.begin();
    this.#work = begun.then(
      () => this.#poll(),
      () => undefined,
    );
    try {
      await begun;
    } catch (error) {
      await this.stop();
      throw error;
    }
  }

  /**
   * Takes no more jobs, waits for the running ones and their results, and then abandons the others. Other workers get
   * those once the leases are over. Every call returns the same promise, which never rejects.
   */
  stop(): Promise<void> {
    this.#stop ??= this.#shutDown();
    return this.#stop;
  }

  /** Takes jobs until no more are wanted. Never rejects. */
  async #poll(): Promise<void> {
    const backOff = new BackOff();
    const { signal } = this.#stopping;
    while (await this.#hasRoom()) {
      const { id } = this;
      const max = Math.min(MAX_JOBS, this.#slots - this.#running);
      const began = performance.now();
      try {
        const asked = { wait: POLL_SECONDS, max, signal: this.#polling.signal };
        const { jobs, ahead } = await this.#service.poll(id ?? '', asked);
        this.#failures.worked();
        for (const job of jobs) this.#take(job, ahead);
        if (jobs.length > 0 || performance.now() - began > MIN_POLL_MS) backOff.reset();
        else await pause(backOff.next(), signal);
      } catch (error) {
        if (signal.aborted) return;
        await this.#pollFailed(error, id, backOff);
      }
    }
  }

  async #pollFailed(error: unknown, id: string | null, backOff: BackOff): Promise<void> {
    const status = error instanceof ApiError ? error.status : 0;
    const reason = error instanceof ApiError ? error.details['reason'] : undefined;
    const fields = { worker: id, error: messageOf(error) };
    if (status === 409 && (reason === 'drained' || reason === 'replaced')) {
      this.#log('warn', `worker was ${reason}; it stops`, fields);
      this.#isDrained = true;
      void this.stop();
      return;
    }
    try {
      if (status === 404 || status === 409) return await this.#registration.again(id);
    } catch (registerError) {
      if (this.#stopping.signal.aborted) return;
      this.#failures.failed(registerError);
      return pause(backOff.next(registerError), this.#stopping.signal);
    }
    this.#failures.failed(error, { worker: id });
    return pause(backOff.next(error), this.#stopping.signal);
  }

  /** Waits for a free slot. @returns false once no more jobs are wanted */
  async #hasRoom(): Promise<boolean> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      if (this.#running < this.#slots && this.#results.size < MAX_UNSENT) return true;
      await this.#change();
    }
    return false;
  }

  #take(handed: HandedJob, ahead: number): void {
    const { lease } = this.#registration;
    const job = new LeasedJob(handed, { service: this.#service, log: this.#log, lease, ahead });
    this.#jobs.add(job);
    this.#running += 1;
    void this.#do(job);
  }

  /** Never rejects. */
  async #do(job: LeasedJob): Promise<void> {
    const ending = await this.#endingOf(job);
    this.#running -= 1;
    this.#changed();
    await job.flush();
    if (job.holding === 'left') this.#log('warn', 'dropped the result of a job', job.fields);
    else this.#results.add(job, ending);
    this.#jobs.delete(job);
    this.#changed();
  }

  async #endingOf({ handed, job }: LeasedJob): Promise<Ending> {
    const { tool: name } = handed;
    const tool = Object.hasOwn(this.#options.tools, name) ? this.#options.tools[name] : undefined;
    if (tool === undefined) return { error: `the worker has no tool ${name}`, retryable: true };
    try {
      return { result: jsonResult(name, await tool.run(handed.arguments, job)) };
    } catch (error) {
      return failureOf(error);
    }
  }

  async #shutDown(): Promise<void> {
    this.#stopping.abort();
    this.#changed();
    const { shutdownSeconds = 25 } = this.#options;
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), shutdownSeconds * 1000);
    const over = (): void => this.#changed();
    limit.signal.addEventListener('abort', over, { once: true });
    await this.#drain();
    const lastPoll = setTimeout(() => this.#polling.abort(), LAST_POLL_TIMEOUT_MS);
    await this.#work;
    clearTimeout(lastPoll);
    while (this.#jobs.size + this.#results.size > 0 && !limit.signal.aborted) await this.#change();
    clearTimeout(timer);
    for (const job of this.#jobs) {
      this.#log('warn', 'left a job to another worker: it did not end in time', job.fields);
      job.abandon();
    }
    this.#results.stop();
    this.#signals.ignore();
    this.#log('info', 'worker stopped', { worker: this.id });
    this.#resolveStopped();
  }

  /** Draining makes the service answer the waiting poll, so no job is lost in transit. */
  async #drain(): Promise<void> {
    const { id } = this;
    if (id === null || this.#isDrained) return;
    try {
      await this.#service.drain(id);
    } catch (error) {
      this.#polling.abort();
      this.#log('warn', 'could not drain the worker', { worker: id, error: messageOf(error) });
    }
  }

  async #stopBySignal(signal: NodeJS.Signals): Promise<void> {
    this.#log('info', `worker stops: received ${signal}`, { worker: this.id });
    await this.stop();
    // Tools that ignore their signals would keep the process alive.
    if (this.#running > 0) process.kill(process.pid, signal);
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve));
  }

  #changed(): void {
    for (const wake of this.#wake.splice(0)) wake();
  }
}

function offerOf({ name, tools, labels = {} }: WorkerOptions, slots: number): Offer {
  const offered = Object.entries(tools).map(([tool, { description, schema }]) => {
    return { name: tool, description, schema };
  });
  return { name: name ?? ownName(), tools: offered, slots, labels };
}

let named = 0;

/** A name that is unique among the workers running now. */
function ownName(): string {
  named += 1;
  const suffix = named === 1 ? '' : `-${named}`;
  return `${hostname().slice(0, 60)}-${process.pid}${suffix}`;
}
