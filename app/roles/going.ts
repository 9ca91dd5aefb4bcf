import { setMaxListeners } from 'node:events';
import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { keepGoing, type Ongoing } from './keep-going.ts';

/** Supervises the long-running work of a process: restarts what fails, and ends all of it together. */
export class Going {
  readonly #controller = new AbortController();
  readonly #works: Promise<void>[] = [];
  readonly #states: Ongoing[] = [];
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;

  constructor(clock: Clock, telemetry: Telemetry) {
    this.#clock = clock;
    this.#telemetry = telemetry;
    // Each piece of work listens, some more than once; this is not a leak.
    setMaxListeners(0, this.#controller.signal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts work, and restarts it when it fails. `work` calls `started` once it does its part. */
  keep(name: string, work: (started: () => void) => Promise<void>): void {
    const ongoing: Ongoing = { name, state: 'starting', problem: null };
    this.#states.push(ongoing);
    const { signal } = this;
    const options = { ongoing, work, signal, clock: this.#clock, telemetry: this.#telemetry };
    this.#works.push(keepGoing(options));
  }

  /** Like {@link keep}, for work that counts as started at once. */
  keepRunning(name: string, work: () => Promise<void>): void {
    this.keep(name, (started) => {
      started();
      return work();
    });
  }

  /** The work that is not running (yet, or any more), and why. */
  notGoing(): readonly Ongoing[] {
    return this.#states.filter(({ state }) => state !== 'going');
  }

  /** Ends all work, and waits until it has ended. */
  async end(): Promise<void> {
    this.#controller.abort();
    await Promise.all(this.#works);
  }
}
