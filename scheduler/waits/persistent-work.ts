import type { Clock } from '../../domain/clock.ts';
import type { Telemetry } from '../../observability/telemetry.ts';

/** The most pieces of work at the same time. */
const CONCURRENCY = 64;

/** The pause after a piece has failed, doubled each time up to the maximum. Milliseconds. */
const FIRST_PAUSE = 500;
const MAX_PAUSE = 60_000;

interface Piece {
  readonly name: string;
  readonly work: () => Promise<void>;
  readonly done: () => void;
  /** Failures in a row. */
  failures: number;
}

interface WorkOptions {
  readonly clock: Clock;
  readonly telemetry: Telemetry;
  /** The log message for a failed piece. */
  readonly failure: string;
}

/** Repeats pieces of work until they succeed, a limited number at a time. */
export class PersistentWork {
  readonly #options: WorkOptions;
  /** Pieces that wait to start, in order. */
  readonly #waiting = new Set<Piece>();
  /** Pieces that are not done, by name. */
  readonly #pending = new Map<string, Promise<void>>();
  readonly #running = new Set<Promise<void>>();
  #stopped = false;

  constructor(options: WorkOptions) {
    this.#options = options;
  }

  /**
   * Starts a piece, unless one of that name is pending.
   * @returns a promise that resolves when that piece is done; never rejects. It stays pending if the work is stopped
   *   first.
   */
  add(name: string, work: () => Promise<void>): Promise<void> {
    const known = this.#pending.get(name);
    if (known !== undefined) return known;
    const pending = new Promise<void>((done) =>
      this.#waiting.add({ name, work, done, failures: 0 }),
    );
    this.#pending.set(name, pending);
    this.#begin();
    return pending;
  }

  /** Starts nothing more. Resolves when nothing runs. Never rejects. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#running);
  }

  #begin(): void {
    for (const piece of this.#waiting) {
      if (this.#stopped || this.#running.size >= CONCURRENCY) return;
      this.#waiting.delete(piece);
      const running = this.#do(piece);
      this.#running.add(running);
      void running.then(() => {
        this.#running.delete(running);
        this.#begin();
      });
    }
  }

  /** Never rejects. */
  async #do(piece: Piece): Promise<void> {
    const { clock, telemetry } = this.#options;
    const failure = `${this.#options.failure}; retrying`;
    try {
      await piece.work();
      this.#pending.delete(piece.name);
      piece.done();
      telemetry.failures.worked(failure);
    } catch (error) {
      telemetry.failures.failed(failure, error);
      const pause = Math.min(FIRST_PAUSE * 2 ** piece.failures, MAX_PAUSE);
      piece.failures += 1;
      clock.after(pause, () => {
        this.#waiting.add(piece);
        this.#begin();
      });
    }
  }
}
