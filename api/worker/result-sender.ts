import { ApiError } from '../client/client-connection.ts';
import { BackOff } from './back-off.ts';
import { FailureLines } from './failure-lines.ts';
import { isInvalid, type AnswerOutcome, type JobAnswer, type JobService } from './job-service.ts';
import { bytesOf, MAX_RESULT_BYTES } from './json-result.ts';
import type { LeasedJob } from './leased-job.ts';
import type { Registration } from './registration.ts';
import { messageOf } from './tool-errors.ts';
import type { WorkerLog } from './worker-log.ts';

/** Results that arrive within this many milliseconds are sent together. */
const BATCH_DELAY_MS = 2;
/** The most results in a request. */
const MAX_RESULTS = 100;
/** The most requests at a time. */
const MAX_REQUESTS = 4;

/** How a job ended, without its ids. */
export type Ending =
  | { readonly result: unknown }
  | { readonly error: string; readonly retryable: boolean };

interface Unsent {
  readonly job: LeasedJob;
  readonly ending: Ending;
  /** The size of the result as JSON. */
  readonly bytes: number;
  /** Whether it was sent before, so that it may have been accepted. */
  readonly wasSent: boolean;
  /** Whether it must be sent in a separate request. */
  readonly isAlone: boolean;
}

export interface SenderParts {
  readonly service: JobService;
  readonly log: WorkerLog;
  readonly registration: Registration;
  /** Called when a result is no longer kept. */
  readonly onSettled: () => void;
}

/** Sends results in batches, and keeps them while their leases last. */
export class ResultSender {
  readonly #parts: SenderParts;
  readonly #backOff = new BackOff();
  readonly #failures: FailureLines;
  #queue: Unsent[] = [];
  #requests = 0;
  /** The number of results in the queue or being sent. */
  #size = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The earliest next request after a failure, on the steady clock. */
  #notBefore = 0;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#failures = new FailureLines(parts.log, 'send results');
  }

  get size(): number {
    return this.#size;
  }

  add(job: LeasedJob, ending: Ending): void {
    this.#size += 1;
    const bytes = bytesOf(ending) + 300;
    this.#queue.push({ job, ending, bytes, wasSent: false, isAlone: false });
    this.#schedule(this.#queue.length < MAX_RESULTS ? BATCH_DELAY_MS : 0);
  }

  /** Drops all results that are not being sent. */
  stop(): void {
    clearTimeout(this.#timer);
    for (const { job } of this.#queue.splice(0)) this.#drop(job, 'the worker stopped');
  }

  #schedule(after: number): void {
    const wait = Math.max(after, this.#notBefore - performance.now());
    if (wait <= 0) this.#send();
    else this.#timer ??= setTimeout(() => this.#send(), wait);
  }

  #send(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#queue.length > 0 && this.#requests < MAX_REQUESTS) {
      const batch = this.#nextBatch();
      if (batch.length === 0) return;
      this.#requests += 1;
      void this.#request(batch).then(() => {
        this.#requests -= 1;
        if (this.#queue.length > 0) this.#schedule(0);
      });
      // After a failure, a single request checks whether the service is available again.
      if (!this.#backOff.isFresh) return;
    }
  }

  /** Leaves out results whose leases are over, which the service would reject. */
  #nextBatch(): readonly Unsent[] {
    const batch: Unsent[] = [];
    let bytes = 0;
    for (;;) {
      const [next] = this.#queue;
      if (next === undefined || batch.length === MAX_RESULTS) return batch;
      const fits = bytes + next.bytes <= MAX_RESULT_BYTES && !next.isAlone;
      if (batch.length > 0 && !fits) return batch;
      this.#queue.shift();
      if (!isWanted(next)) {
        this.#drop(next.job, 'its lease is over, or it is no longer wanted');
        continue;
      }
      bytes += next.bytes;
      batch.push(next);
      if (next.isAlone) return batch;
    }
  }

  /** Never rejects. */
  async #request(batch: readonly Unsent[]): Promise<void> {
    const { service, registration } = this.#parts;
    const id = registration.id ?? '';
    try {
      const outcomes = await service.answer(id, batch.map(answerOf));
      this.#backOff.reset();
      this.#failures.worked();
      for (const [place, each] of batch.entries()) this.#settle(each, outcomes[place]);
    } catch (error) {
      if (isInvalid(error)) this.#invalid(batch, error);
      else if (error instanceof ApiError && error.status === 404) await this.#unknown(batch, id);
      else this.#failed(batch, error);
    }
  }

  #failed(batch: readonly Unsent[], error: unknown): void {
    this.#notBefore = performance.now() + this.#backOff.next(error);
    this.#failures.failed(error, { results: batch.length });
    this.#queue.unshift(...batch.map((each) => ({ ...each, wasSent: true })));
  }

  /** A single result may cause the rejection of the whole request. */
  #invalid(batch: readonly Unsent[], error: Error): void {
    const [first, ...others] = batch;
    if (first === undefined) return;
    if (others.length > 0) {
      this.#queue.unshift(...batch.map((each) => ({ ...each, isAlone: true })));
    } else if ('error' in first.ending) this.#drop(first.job, messageOf(error));
    else {
      const said = `the service rejected the result: ${messageOf(error)}`;
      this.#queue.unshift({ ...first, ending: { error: said, retryable: false } });
    }
  }

  /** The service no longer knows this worker, but the worker still has its jobs. */
  async #unknown(batch: readonly Unsent[], workerId: string): Promise<void> {
    try {
      await this.#parts.registration.again(workerId);
      this.#queue.unshift(...batch);
    } catch (error) {
      this.#failed(batch, error);
    }
  }

  #settle({ job, wasSent }: Unsent, outcome: AnswerOutcome | undefined): void {
    if (outcome?.status === 200) {
      this.#end(job);
      return;
    }
    const known = wasSent && outcome?.status === 409;
    const why = outcome?.message ?? 'it got no response';
    this.#drop(job, known ? `${why} (an earlier request may have delivered it)` : why);
  }

  #drop(job: LeasedJob, why: string): void {
    const level = job.holding === 'canceled' ? 'info' : 'warn';
    this.#parts.log(level, 'dropped the result of a job', { ...job.fields, why });
    this.#end(job);
  }

  #end(job: LeasedJob): void {
    job.release();
    this.#size -= 1;
    this.#parts.onSettled();
  }
}

/** A lapsed lease may still be valid for the service. One request will tell. */
function isWanted({ job: { holding }, wasSent }: Unsent): boolean {
  return holding === 'held' || (holding === 'lapsed' && !wasSent);
}

function answerOf({ job, ending }: Unsent): JobAnswer {
  const { job_id, lease } = job.handed;
  return { job_id, lease, ...ending };
}
