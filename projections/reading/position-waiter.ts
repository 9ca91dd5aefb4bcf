import type { Cancel, Clock } from '../../domain/clock.ts';
import { BEGINNING, type Position } from '../../domain/event-store.ts';
import type { Projection, ReadModel } from '../read-model.ts';

/** Waits until a view has everything up to a position. */
export interface PositionWaiter {
  /**
   * @param atMost milliseconds
   * @returns whether the view has passed the position in that time, and how far it is known to be. A read
   *   model that does not answer is waited for, like one that is behind.
   */
  passed(
    projection: Projection,
    position: Position,
    atMost: number,
  ): Promise<{ readonly passed: boolean; readonly position: Position }>;

  /** How far a view is known to be, without looking. */
  known(projection: Projection): Position;

  /** Word from the projector, where it is near: a `CheckpointListener`. */
  readonly notify: (name: string, position: Position) => void;
}

interface Waiting {
  readonly position: Position;
  readonly settle: (passed: boolean) => void;
}

/**
 * One for all who wait. Word of the projector ends a wait at once; beside it, and for projectors of other
 * processes, the view's checkpoint is asked for every few milliseconds while somebody waits, once for all
 * who wait for the same view.
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

/** Those who wait for one view. */
class Watch {
  /** The view is at least here. Never goes back: neither does a view, also by a rebuild. */
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
        // It is behind for all that can be known; whoever waits is told so when the time is over.
      }
      if (this.#waiting.size > 0) await this.#clock.sleep(this.#pollMs);
    }
    this.#isPolling = false;
  }
}
