import type { Clock } from '../domain/clock.ts';

/** How long a call waits for a slot (milliseconds), and how many calls may wait. */
const WAIT_LIMIT = 5_000;
const MAX_WAITING_CALLS = 100;

/** The worker of the process, which has the slots. */
export interface SlotSharer {
  /** Slots that runs hold now. */
  runsHold(): number;
  /** Notes that a call has released its slot. */
  slotReleased(): void;
}

/**
 * The worker slots that direct tool calls hold, outside any run. Calls hold at most half of the slots, so that they never
 * block all runs. A process without a worker has the same limit. With a single slot, runs and calls take turns.
 */
export class CallSlots {
  /** Slots that calls may hold. */
  readonly limit: number;
  readonly #size: number;
  readonly #clock: Clock;
  readonly #waiting: { readonly go: () => void }[] = [];
  #worker: SlotSharer | null = null;
  #taken = 0;

  /** @param size slots of the process, `SVC_WORKER_CONCURRENCY` */
  constructor(size: number, clock: Clock) {
    this.#size = size;
    this.#clock = clock;
    this.limit = Math.max(1, Math.floor(size / 2));
  }

  /** Slots that calls hold now. */
  get taken(): number {
    return this.#taken;
  }

  /** Shares the slots with the worker of this process. */
  shareWith(worker: SlotSharer): void {
    this.#worker = worker;
  }

  /**
   * Takes a slot, waiting up to five seconds for one.
   *
   * @param signal aborted when the caller has left
   * @returns releases the slot, once; null when none became free
   */
  async take(signal: AbortSignal): Promise<(() => void) | null> {
    if (this.#isFree) return this.#hold();
    if (this.#waiting.length >= MAX_WAITING_CALLS || signal.aborted) return null;
    return new Promise((resolve) => {
      const end = (release: (() => void) | null): void => {
        cancel();
        signal.removeEventListener('abort', leave);
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve(release);
      };
      const entry = { go: () => end(this.#hold()) };
      const leave = (): void => end(null);
      const cancel = this.#clock.after(WAIT_LIMIT, leave);
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(entry);
    });
  }

  /** Gives free slots to waiting calls. */
  offer(): void {
    while (this.#isFree) {
      const [first] = this.#waiting;
      if (first === undefined) return;
      first.go();
    }
  }

  get #isFree(): boolean {
    const runs = this.#worker?.runsHold() ?? 0;
    return this.#taken < this.limit && this.#taken + runs < this.#size;
  }

  #hold(): () => void {
    this.#taken += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#taken -= 1;
      // With a single slot, a run has the first turn.
      if (this.#worker === null || this.limit < this.#size) this.offer();
      this.#worker?.slotReleased();
    };
  }
}
