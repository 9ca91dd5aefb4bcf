import type { Committed } from './writer.ts';

/** Others hear of what may be told later within this time. Milliseconds. */
const MOST_LATER = 100;

/** To whom commits are told. */
export interface Listeners {
  /** Other processes, and the threads of this one, up to which position there is something. */
  readonly publish: (last: number) => void;
  /** Those in this thread who follow the log. */
  readonly handOn: (committed: Committed) => void;
}

/**
 * Tells of the commits of this process, in their order: at once, but for those that may be told later. These are kept
 * until nothing more of their kind is on its way, something else was committed, or their time is over; then those who
 * follow the log, and the projector most of all, have the processor again.
 */
export class Announcer {
  readonly #listeners: Listeners;
  readonly #held: Committed[] = [];
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
    if (committed.later === null) {
      this.releaseAll();
      this.#listeners.publish(committed.last);
      this.#listeners.handOn(committed);
      return;
    }
    this.#held.push(committed);
    if (committed.later === 'more') {
      this.#timer ??= setTimeout(() => this.#release(), MOST_LATER).unref();
    } else {
      this.#release();
    }
  }

  /** Tells of everything now. */
  releaseAll(): void {
    this.#stopTimer();
    const last = this.#held.at(-1);
    if (last === undefined) return;
    this.#listeners.publish(last.last);
    for (const committed of this.#held.splice(0)) this.#listeners.handOn(committed);
  }

  /** A commit in each turn of the event loop, as there may be many: what has come by them goes first. */
  #release(): void {
    this.#stopTimer();
    if (this.#releasing) return;
    this.#releasing = true;
    setImmediate(() => {
      this.#releasing = false;
      const last = this.#held.at(-1);
      const next = this.#held.shift();
      if (last === undefined || next === undefined) return;
      this.#listeners.publish(last.last);
      this.#listeners.handOn(next);
      if (this.#held.length > 0) this.#release();
    });
  }

  #stopTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
