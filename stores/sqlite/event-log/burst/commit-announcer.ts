import type { Committed } from '../writing/writer.ts';

/** Milliseconds within which held commits are announced. */
const MAX_DELAY_MS = 100;

/** The receivers of commits. */
export interface CommitListeners {
  /** Notifies other processes, and threads of this one, up to which position there are events. */
  readonly publish: (last: number) => void;
  /** Notifies them that a notice will follow. */
  readonly announce: () => void;
  /** Delivers to this thread's followers of the log. */
  readonly deliver: (committed: Committed) => void;
  /** Whether more appends that may be announced later are being written. */
  readonly isMoreComing: () => boolean;
}

/**
 * Announces this process's commits in order. Those that may be announced later are held until no more of their kind are
 * being written, another commit follows, or their time is up. Meanwhile the projector does not compete for the processor.
 */

export class CommitAnnouncer {
  readonly #listeners: CommitListeners;
  readonly #held: Committed[] = [];
  /** Whether the time of the first held commit is up. */
  #isOverdue = false;
  #timer: NodeJS.Timeout | undefined;
  #releasing = false;

  constructor(listeners: CommitListeners) {
    this.#listeners = listeners;
  }

  /** Whether any commit is unannounced. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  add(committed: Committed): void {
    if (!committed.mayAnnounceLater) {
      this.releaseAll();
      this.#listeners.publish(committed.last);
      this.#listeners.deliver(committed);
      return;
    }
    if (this.#held.length === 0) {
      this.#isOverdue = false;
      this.#timer = setTimeout(() => {
        this.#isOverdue = true;
        this.#releaseSoon();
      }, MAX_DELAY_MS).unref();
      this.#listeners.announce();
    }
    this.#held.push(committed);
    if (!this.#listeners.isMoreComing()) this.#releaseSoon();
  }

  /** Announces everything now. */
  releaseAll(): void {
    const last = this.#held.at(-1);
    if (last === undefined) return;
    clearTimeout(this.#timer);
    this.#listeners.publish(last.last);
    for (const committed of this.#held.splice(0)) this.#listeners.deliver(committed);
  }

  /** Releases in the next turn of the event loop, then one commit per turn, as each may cause further work. */
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
      this.#listeners.deliver(next);
      if (this.#held.length > 0) this.#releaseSoon();
      else clearTimeout(this.#timer);
    });
  }
}
