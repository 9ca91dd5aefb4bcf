import { BEGINNING, type Position } from '../../domain/event-store.ts';

interface Waiter {
  readonly position: Position;
  readonly resolve: () => void;
}

/** The position that a follower of the log has reached. Callers can wait for it. */
export class ReachedPosition {
  #position: Position = BEGINNING;
  /** Whether the follower is complete up to its position. Until then, all callers wait. */
  #isComplete = false;
  #waiting: Waiter[] = [];

  get position(): Position {
    return this.#position;
  }

  /** Notes that the follower is complete up to a position. */
  reach(position: Position): void {
    this.#isComplete = true;
    if (position > this.#position) this.#position = position;
    if (this.#waiting.length === 0) return;
    const reached = this.#position;
    const passed = this.#waiting.filter((waiter) => waiter.position <= reached);
    this.#waiting = this.#waiting.filter((waiter) => waiter.position > reached);
    for (const { resolve } of passed) resolve();
  }

  /** Notes that the follower starts again. It is incomplete until it next reaches a position. */
  restart(): void {
    this.#isComplete = false;
  }

  /** Whether the follower is complete, and has passed a position. */
  hasPassed(position: Position): boolean {
    return this.#isComplete && position <= this.#position;
  }

  /**
   * Resolves once the follower is complete and has passed a position. Never times out. Rejects with the signal's reason
   * when the signal is aborted.
   */
  passed(position: Position, signal: AbortSignal): Promise<void> {
    if (this.hasPassed(position)) return Promise.resolve();
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting = this.#waiting.filter((each) => each !== waiter);
        reject(signal.reason as Error);
      };
      const waiter = {
        position,
        resolve: () => {
          signal.removeEventListener('abort', giveUp);
          resolve();
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      this.#waiting.push(waiter);
    });
  }
}
