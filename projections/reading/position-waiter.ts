import type { Cancel, Clock } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { Projection, ReadModel } from '../read-model.ts';

/** Waits until a view has everything up to a position. */
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

  /** Notifies of a checkpoint: a `CheckpointListener`, where the projector is near. */
  readonly notify: (name: string, position: Position) => void;
}

interface Waiting {
  readonly position: Position;
  readonly settle: (passed: boolean) => void;
}

/**
 * Creates a waiter. A notification ends a wait at once. For projectors in other processes, the view's checkpoint is
 * polled while somebody waits, once for all waiters of a view.
 *
 * @param options.pollMs default 5
 */
export function createPositionWaiter(options: {
  readonly readModel: ReadModel;
  readonly clock: Clock;
  readonly pollMs?: number;
}): PositionWaiter {
  const watches = new Map<string, Watch>();
  return {
    async passed(projection, position, atMost) {
      let watch = watches.get(projection.name);
      if (!watch) {
        watch = new Watch(projection, options.readModel, options.clock, options.pollMs ?? 5);
        watches.set(projection.name, watch);
      }
      const passed = await watch.wait(position, atMost);
      return { passed, position: watch.known };
    },
    known: (projection) => watches.get(projection.name)?.known ?? BEGINNING,
    notify: (name, position) => watches.get(name)?.reached(position),
  };
}

/** The waiters of one view. */
class Watch {
  /** The view is at least here. It never goes back, not even by a rebuild. */
  known: Position = BEGINNING;
  readonly #projection: Projection;
  readonly #readModel: ReadModel;
  readonly #clock: Clock;
  readonly #pollMs: number;
  readonly #waiting = new Set<Waiting>();
  #isPolling = false;

  constructor(projection: Projection, readModel: ReadModel, clock: Clock, pollMs: number) {
    this.#projection = projection;
    this.#readModel = readModel;
    this.#clock = clock;
    this.#pollMs = pollMs;
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
      const cancel: Cancel = this.#clock.after(atMost, () => waiting.settle(false));
      this.#waiting.add(waiting);
      if (!this.#isPolling) void this.#poll();
    });
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
    while (this.#waiting.size > 0) {
      try {
        this.reached(await this.#readModel.checkpoint(this.#projection));
      } catch {
        // It counts as behind; waiters time out.
      }
      if (this.#waiting.size > 0) await this.#clock.sleep(this.#pollMs);
    }
    this.#isPolling = false;
  }
}
