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
  state: 'starting' | 'going' | 'failing' | 'stopped';
  /** Why it fails. */
  problem: string | null;
}

/** Supervises the long-running work of a process: restarts what fails, and ends all of it together. */
export class Supervisor {
  readonly #controller = new AbortController();
  readonly #works: Promise<void>[] = [];
  readonly #states: SupervisedWork[] = [];
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
  supervise(name: string, work: (started: () => void) => Promise<void>): void {
    const ongoing: SupervisedWork = { name, state: 'starting', problem: null };
    this.#states.push(ongoing);
    this.#works.push(this.#supervise(ongoing, work));
  }

  /** Like {@link supervise}, for work that counts as started at once. */
  superviseStarted(name: string, work: () => Promise<void>): void {
    this.supervise(name, (started) => {
      started();
      return work();
    });
  }

  /** The work that is not running, not yet or no longer, and why. */
  notRunning(): readonly SupervisedWork[] {
    return this.#states.filter(({ state }) => state !== 'going');
  }

  /** Ends all work, and waits until it has ended. */
  async end(): Promise<void> {
    this.#controller.abort();
    await Promise.all(this.#works);
  }

  /** Runs work until the end. A failure, such as an unavailable store, is logged before the restart. Never rejects. */
  async #supervise(
    ongoing: SupervisedWork,
    work: (started: () => void) => Promise<void>,
  ): Promise<void> {
    const clock = this.#clock;
    const { signal } = this;
    const failure = `${ongoing.name} failed; retrying`;
    const worked = (): void => this.#telemetry.failures.worked(failure);
    for (let failures = 0; !signal.aborted;) {
      let startedAt = Number.POSITIVE_INFINITY;
      let forget: Cancel = () => {};
      try {
        await work(() => {
          startedAt = Math.min(startedAt, clock.steady());
          ongoing.state = 'going';
          ongoing.problem = null;
          forget();
          forget = clock.after(STABLE_AFTER, worked, { background: true });
        });
        if (signal.aborted) break;
        throw new Error('it ended unexpectedly');
      } catch (error) {
        if (signal.aborted) break;
        forget();
        if (clock.steady() - startedAt >= STABLE_AFTER) failures = 0;
        ongoing.state = 'failing';
        const message = error instanceof Error ? error.message : String(error);
        ongoing.problem = serverProblemOf(error)?.summary ?? message;
        this.#telemetry.failures.failed(failure, error);
        const pause = PAUSES[Math.min(failures, PAUSES.length - 1)] ?? 2000;
        failures += 1;
        await clock.sleep(pause, signal).catch(() => {});
      } finally {
        forget();
      }
    }
    ongoing.state = 'stopped';
  }
}
