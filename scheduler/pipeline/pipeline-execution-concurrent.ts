import { setMaxListeners } from 'node:events';
import type { Failure } from './call-failure.ts';
import type { Progress } from './pipeline-execution-progress.ts';
import { aborted, done, suspended, type StepOutcome } from './step-outcome.ts';

/**
 * A step, an item or a group that runs concurrently with others. It may be run again once one of its waits has ended.
 */
export interface Unit {
  readonly name: string;
  /** Names of the units that must end before it starts. */
  readonly needs: readonly string[];
  /** Whether a step, or an item, is part of it. */
  owns(step: string): boolean;
  run(signal: AbortSignal): StepOutcome | Promise<StepOutcome>;
}

export interface ConcurrentOptions {
  /** How many may run or wait at the same time. Default: all. */
  readonly maxParallel?: number;
  /** Stops all units. */
  readonly signal: AbortSignal;
  /** Fails all units after this time. */
  readonly timeout?: {
    readonly ms: number;
    /** The step that fails. */
    readonly step: string;
    readonly message: string;
  };
}

/**
 * Runs units concurrently, each once all units that it needs are done. The first failure stops the others.
 * @returns once nothing runs. The outcome is suspended if some units wait, which also keeps units that need them
 *   waiting
 */
export async function runConcurrently(
  progress: Progress,
  units: readonly Unit[],
  options: ConcurrentOptions,
): Promise<StepOutcome> {
  const running = new ConcurrentRun(progress, units, options);
  const ignore = progress.waits.listen((step) => running.resumed(step));
  try {
    return await running.outcome();
  } finally {
    ignore();
  }
}

class ConcurrentRun {
  readonly #progress: Progress;
  readonly #options: ConcurrentOptions;
  readonly #controller = new AbortController();
  readonly #ready: Unit[] = [];
  #blocked: Unit[] = [];
  readonly #suspended = new Set<Unit>();
  readonly #done = new Set<string>();
  #running = 0;
  #isStarting = false;
  #failed: StepOutcome | null = null;
  #broken: { readonly error: unknown } | null = null;
  #settle: () => void = () => {};

  constructor(progress: Progress, units: readonly Unit[], options: ConcurrentOptions) {
    this.#progress = progress;
    this.#options = options;
    // Each running step adds a listener; this is not a leak.
    setMaxListeners(0, this.#controller.signal);
    for (const unit of units) (unit.needs.length === 0 ? this.#ready : this.#blocked).push(unit);
    // Units are taken from the end.
    this.#ready.reverse();
  }

  async outcome(): Promise<StepOutcome> {
    const { signal, timeout } = this.#options;
    const stop = (): void => this.#controller.abort(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const cancelTimeout =
      timeout === undefined
        ? (): void => {}
        : this.#progress.environment.clock.after(timeout.ms, () =>
            this.#fail(timeout.step, { message: timeout.message, retryable: true }),
          );
    await new Promise<void>((resolve) => {
      this.#settle = resolve;
      void this.#startReady();
    });
    cancelTimeout();
    signal.removeEventListener('abort', stop);
    if (this.#broken !== null) throw this.#broken.error;
    if (this.#failed !== null) return this.#failed;
    if (signal.aborted) return aborted;
    return this.#suspended.size > 0 ? suspended : done;
  }

  /** Notes that the wait of a step has ended. */
  resumed(step: string): void {
    for (const unit of this.#suspended) {
      if (!unit.owns(step)) continue;
      this.#suspended.delete(unit);
      this.#ready.push(unit);
      void this.#startReady();
      return;
    }
  }

  /** Starts the units that are ready, and settles when none runs. Never rejects. */
  async #startReady(): Promise<void> {
    if (this.#isStarting) return;
    this.#isStarting = true;
    const { maxParallel = Infinity } = this.#options;
    while (
      this.#ready.length > 0 &&
      !this.#controller.signal.aborted &&
      this.#running + this.#suspended.size < maxParallel
    ) {
      // Without a pause, synchronous steps would block the event loop together.
      const pause = this.#progress.pauseIfDue();
      if (pause) await pause.catch((error: unknown) => this.#broke(error));
      const unit = this.#ready.pop();
      if (unit !== undefined) void this.#run(unit);
    }
    this.#isStarting = false;
    if (this.#running === 0) this.#settle();
  }

  /** Never rejects. */
  async #run(unit: Unit): Promise<void> {
    this.#running += 1;
    try {
      if (!this.#controller.signal.aborted) {
        this.#note(unit, await unit.run(this.#controller.signal));
        // The other units may run for long.
        if (this.#running > 1 || this.#ready.length > 0) await this.#progress.flush();
      }
    } catch (error) {
      this.#broke(error);
    }
    this.#running -= 1;
    await this.#startReady();
  }

  #note(unit: Unit, outcome: StepOutcome): void {
    if (outcome.kind === 'failed') this.#fail(outcome.step, outcome.failure);
    if (outcome.kind === 'suspended') {
      const isResumed = this.#progress.waits.hasResumed((step) => unit.owns(step));
      if (isResumed) this.#ready.push(unit);
      else this.#suspended.add(unit);
    }
    if (outcome.kind !== 'done') return;
    this.#done.add(unit.name);
    const isReady = ({ needs }: Unit): boolean => needs.every((each) => this.#done.has(each));
    this.#ready.push(...this.#blocked.filter(isReady));
    this.#blocked = this.#blocked.filter((each) => !isReady(each));
  }

  #fail(step: string, failure: Failure): void {
    this.#failed ??= { kind: 'failed', step, failure };
    this.#controller.abort(new Error(`${step} failed`));
  }

  /** After a failed append, the execution ends once all units have stopped. */
  #broke(error: unknown): void {
    this.#broken ??= { error };
    this.#controller.abort(error);
  }
}
