import type { Cancel, Clock } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Projection, ReadModel } from '../read-model.ts';

/** The message that reports a failure. */
const FAILURE = 'could not read the position of a view; retrying';

/** Pause after a failed poll. Milliseconds. */
const PAUSE_AFTER_FAILURE = 100;

/** A wait consists of so many timers, so a stall of the machine uses up one part of it, not the whole. */
const PARTS_OF_A_WAIT = 10;

/** Waits until a view is complete up to a position. */
export interface PositionWaiter {
  /**
   * @param atMost milliseconds
   * @returns whether the view has passed the position in that time, and its last known position. An unavailable read
   *   model counts as a view that is behind.
   */
  passed(
    projection: Projection,
    position: Position,
    atMost: number,
  ): Promise<{ readonly passed: boolean; readonly position: Position }>;

  /** The last known position of a view. */
  known(projection: Projection): Position;

  /** A `CheckpointListener` for a projector in this process. */
  readonly notify: (name: string, position: Position) => void;
}

interface WaiterOptions {
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'failures'>;
  /** Default 5. */
  readonly pollMs?: number;
}

interface Waiting {
  readonly position: Position;
  readonly settle: (passed: boolean) => void;
}

/**
 * Creates a waiter. A notification ends a wait at once. For projectors in other processes, the view's checkpoint is
 * polled while somebody waits, once for all waiters of a view.
 */
export function createPositionWaiter(options: WaiterOptions): PositionWaiter {
  const watches = new Map<string, Watch>();
  return {
    async passed(projection, position, atMost) {
      let watch = watches.get(projection.name);
      if (!watch) {
        watch = new Watch(projection, options);
        watches.set(projection.name, watch);
      }
      const passed = await watch.wait(position, atMost);
      return { passed, position: watch.known };
    },
    known: (projection) => watches.get(projection.name)?.known ?? BEGINNING,
    notify: (name, position) => watches.get(name)?.reached(position),
  };
}

class Watch {
  /** The view has passed at least this position. It never goes back, not even in a rebuild. */
  known: Position = BEGINNING;
  readonly #projection: Projection;
  readonly #options: WaiterOptions;
  readonly #waiting = new Set<Waiting>();
  #isPolling = false;

  constructor(projection: Projection, options: WaiterOptions) {
    this.#projection = projection;
    this.#options = options;
  }

  wait(position: Position, atMost: number): Promise<boolean> {
    if (position <= this.known) return Promise.resolve(true);
    return new Promise((resolve) => {
      const waiting: Waiting = {
        position,
        settle: (passed) => {
          cancel();
          this.#waiting.delete(waiting);
          resolve(passed);
        },
      };
      const cancel = this.#afterParts(atMost, () => waiting.settle(false));
      this.#waiting.add(waiting);
      if (!this.#isPolling) void this.#poll();
    });
  }

  /** Calls back after a time in milliseconds, or later if the process stood still meanwhile. */
  #afterParts(time: number, call: () => void): Cancel {
    let parts = PARTS_OF_A_WAIT;
    let cancel: Cancel;
    const waitForPart = (): void => {
      cancel = this.#options.clock.after(time / PARTS_OF_A_WAIT, () => {
        parts -= 1;
        if (parts === 0) call();
        else waitForPart();
      });
    };
    waitForPart();
    return () => cancel();
  }

  reached(position: Position): void {
    if (position <= this.known) return;
    this.known = position;
    for (const waiting of [...this.#waiting]) {
      if (waiting.position <= position) waiting.settle(true);
    }
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    const { readModel, clock, telemetry, pollMs = 5 } = this.#options;
    while (this.#waiting.size > 0) {
      let pause = pollMs;
      try {
        this.reached(await readModel.checkpoint(this.#projection));
        telemetry.failures.worked(FAILURE);
      } catch (error) {
        // The view counts as behind, and waiters time out.
        telemetry.failures.failed(FAILURE, error, { view: this.#projection.name });
        pause = Math.max(pause, PAUSE_AFTER_FAILURE);
      }
      if (this.#waiting.size > 0) await clock.sleep(pause);
    }
    this.#isPolling = false;
  }
}
