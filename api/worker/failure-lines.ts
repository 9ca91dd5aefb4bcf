import { messageOf } from './tool-errors.ts';
import type { WorkerLog } from './worker-log.ts';

/** Milliseconds between two lines about requests that go on failing. */
const INTERVAL = 60_000;

/** Logs requests that fail and are repeated: once, then once a minute with the count, and when they work again. */
export class FailureLines {
  readonly #log: WorkerLog;
  readonly #what: string;
  readonly #now: () => number;
  #times = 0;
  /** When the last line was written; null while nothing fails. */
  #toldAt: number | null = null;

  /** @param what could not be done: `ask for jobs` @param now steady milliseconds */
  constructor(log: WorkerLog, what: string, now: () => number = () => performance.now()) {
    this.#log = log;
    this.#what = what;
    this.#now = now;
  }

  /** A request failed and will be repeated. Lines in between have the level `debug`. */
  failed(error: unknown, fields: Readonly<Record<string, unknown>> = {}): void {
    const now = this.#now();
    const isDue = this.#toldAt === null || now - this.#toldAt >= INTERVAL;
    this.#times += 1;
    const count = this.#times === 1 ? {} : { times: this.#times };
    const told = { ...fields, ...count, error: messageOf(error) };
    this.#log(isDue ? 'warn' : 'debug', `could not ${this.#what}; retrying`, told);
    if (isDue) this.#toldAt = now;
  }

  /** A request succeeded. */
  worked(): void {
    if (this.#toldAt === null) return;
    this.#log('info', `can ${this.#what} again`, { times: this.#times });
    this.#toldAt = null;
    this.#times = 0;
  }
}
