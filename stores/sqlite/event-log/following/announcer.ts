import type { Committed } from '../writing/writer.ts';

/** Others hear of what may be told later within this time. Milliseconds. */
const MOST_LATER = 100;

/** To whom commits are told. */
export interface Listeners {
  /** Other processes, and the threads of this one, up to which position there is something. */
  readonly publish: (last: number) => void;
  /** The same, that there will be something of which they are told later. */
  readonly publishLater: () => void;
  /** Those in this thread who follow the log. */
  readonly handOn: (committed: Committed) => void;
  /** Whether more is on its way to the log that may be told later. */
  readonly isMoreComing: () => boolean;
}

/**
 * Tells of the commits of this process, in their order: at once, but for those that may be told later. These are kept
 * until nothing more of their kind is on its way, something else was committed, or their time is over; then those who
 * follow the log, and the projector most of all, have the processor again.
 */
export class Announcer {
  readonly #listeners: Listeners;
  readonly #held: Committed[] = [];
  /** The time of the first of them is over. */
  #isOverdue = false;
  #timer: NodeJS.Timeout | undefined;
  #releasing = false;

  constructor(listeners: Listeners) {
    this.#listeners = listeners;
  }

  /** Whether there is something of which nobody was told. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  take(committed: Committed): void {
    if (!committed.mayBeToldLater) {
      this.releaseAll();
      this.#listeners.publish(committed.last);
      this.#listeners.handOn(committed);
      return;
    }
    if (this.#held.length === 0) {
      this.#isOverdue = false;
      this.#timer = setTimeout(() => {
        this.#isOverdue = true;
        this.#releaseSoon();
      }, MOST_LATER).unref();
      this.#listeners.publishLater();
    }
    this.#held.push(committed);
    if (!this.#listeners.isMoreComing()) this.#releaseSoon();
  }

  /** Tells of everything now. */
  releaseAll(): void {
    const last = this.#held.at(-1);
    if (last === undefined) return;
    clearTimeout(this.#timer);
    this.#listeners.publish(last.last);
    for (const committed of this.#held.splice(0)) this.#listeners.handOn(committed);
  }

  /**
   * In the next turn of the event loop: what waits for its turn may bring more. Then a commit in each turn, as there may
   * be many: what has come by them goes first.
   */
  #releaseSoon(): void {
    if (this.#releasing) return;
    this.#releasing = true;
    setImmediate(() => {
      this.#releasing = false;
      if (this.#listeners.isMoreComing() && !this.#isOverdue) return;
      const last = this.#held.at(-1);
      const next = this.#held.shift();
      if (last === undefined || next === undefined) return;
      this.#listeners.publish(last.last);
      this.#listeners.handOn(next);
      if (this.#held.length > 0) this.#releaseSoon();
      else clearTimeout(this.#timer);
    });
  }
}
