import { setMaxListeners } from 'node:events';
import type { Cancel, Clock } from '../../domain/clock.ts';
import { serverProblemOf } from '../../domain/server-problem.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** Pauses before failed work restarts. Milliseconds; the last one repeats. */
const PAUSES = [100, 250, 500, 1000, 2000] as const;

/** After this long without a failure, the pauses start over. Some work reports its start too early. Milliseconds. */
const STABLE_AFTER = 5_000;

/** The state of supervised work. */
export interface SupervisedWork {
  readonly name: string;
  state: 'starting' | 'running' | 'failing' | 'stopped';
  /** Why it fails. */
  problem: string | null;
}

/** Supervises the long-running work of a process: restarts failed work, and ends all work together. */
export class Supervisor {
  readonly #controller = new AbortController();
  readonly #works: Promise<void>[] = [];
  readonly #states: SupervisedWork[] = [];
  readonly #clock: Clock;
  readonly #telemetry: Telemetry;

  constructor(clock: Clock, telemetry: Telemetry) {
    this.#clock = clock;
    this.#telemetry = telemetry;
    // Each piece of work adds listeners, some add several; this is not a leak.
    setMaxListeners(0, this.#controller.signal);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Starts work, and restarts it when it fails. `work` calls `started` once it does its part. */
  supervise(name: string, work: (started: () => void) => Promise<void>): void {
    const supervised: SupervisedWork = { name, state: 'starting', problem: null };
    this.#states.push(supervised);
    this.#works.push(this.#supervise(supervised, work));
  }

  /** Like {@link supervise}, for work that counts as started at once. */
  superviseStarted(name: string, work: () => Promise<void>): void {
    this.supervise(name, (started) => {
      started();
      return work();
    });
  }

  /** Like {@link supervise}, for work done once: retries it until it succeeds. After that, it counts as running. */
  superviseOnce(name: string, work: () => Promise<void>): void {
    this.supervise(name, async (started) => {
      await work();
      started();
      await new Promise<void>((ended) => {
        if (this.signal.aborted) ended();
        this.signal.addEventListener('abort', () => ended(), { once: true });
      });
    });
  }

  /** The work that has not started or has stopped, and why. */
  notRunning(): readonly SupervisedWork[] {
    return this.#states.filter(({ state }) => state !== 'running');
  }

  /** Ends all work, and waits until it has ended. */
  async end(): Promise<void> {
    this.#controller.abort();
    await Promise.all(this.#works);
  }

  /** Runs work until the end. A failure, such as an unavailable store, is logged before the restart. Never rejects. */
  async #supervise(
    supervised: SupervisedWork,
    work: (started: () => void) => Promise<void>,
  ): Promise<void> {
    const clock = this.#clock;
    const { signal } = this;
    const failure = `${supervised.name} failed; retrying`;
    const worked = (): void => this.#telemetry.failures.worked(failure);
    for (let failures = 0; !signal.aborted;) {
      let startedAt = Number.POSITIVE_INFINITY;
      let forget: Cancel = () => {};
      try {
        await work(() => {
          startedAt = Math.min(startedAt, clock.steady());
          supervised.state = 'running';
          supervised.problem = null;
          forget();
          forget = clock.after(STABLE_AFTER, worked, { background: true });
        });
        if (signal.aborted) break;
        throw new Error('it ended unexpectedly');
      } catch (error) {
        if (signal.aborted) break;
        forget();
        if (clock.steady() - startedAt >= STABLE_AFTER) failures = 0;
        supervised.state = 'failing';
        const message = error instanceof Error ? error.message : String(error);
        supervised.problem = serverProblemOf(error)?.summary ?? message;
        this.#telemetry.failures.failed(failure, error);
        const pause = PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 2000;
        failures += 1;
        await clock.sleep(pause, signal).catch(() => {});
      } finally {
        forget();
      }
    }
    supervised.state = 'stopped';
  }
}
