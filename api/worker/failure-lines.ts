import { messageOf } from './tool-errors.ts';
import type { WorkerLog } from './worker-log.ts';

/** Milliseconds between two lines about requests that keep failing. */
const INTERVAL = 60_000;

/**
 * Logs failures of requests that are repeated: the first one, then one line a minute with the count, and the first
 * success.
 */
export class FailureLines {
  readonly #log: WorkerLog;
  readonly #what: string;
  readonly #now: () => number;
  #times = 0;
  /** When the last line was written; null while nothing fails. */
  #reportedAt: number | null = null;

  /** @param what the action that could not be done, such as `ask for jobs` @param now steady milliseconds */
  constructor(log: WorkerLog, what: string, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#what = what;
    this.#now = now;
  }

  /** Notes that a request failed and will be repeated. Lines in between have the level `debug`. */
  failed(error: unknown, fields: Readonly<Record<string, unknown>> = {}): void {
    const now = this.#now();
    const isDue = this.#reportedAt === null || now - this.#reportedAt >= INTERVAL;
    this.#times += 1;
    const count = this.#times === 1 ? {} : { times: this.#times };
    const logged = { ...fields, ...count, error: messageOf(error) };
    this.#log(isDue ? 'warn' : 'debug', `could not ${this.#what}; retrying`, logged);
    if (isDue) this.#reportedAt = now;
  }

  /** Notes that a request succeeded. */
  worked(): void {
    if (this.#reportedAt === null) return;
    this.#log('info', `can ${this.#what} again`, { times: this.#times });
    this.#reportedAt = null;
    this.#times = 0;
  }
}
