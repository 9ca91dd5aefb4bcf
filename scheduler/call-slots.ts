import type { Clock } from '../domain/clock.ts';

/** How long a call waits for a slot, and how many wait at a time. Milliseconds. */
const PATIENCE = 5_000;
const MOST_WAITING = 100;

/**
 * The slots of a process as far as tools take them that are called directly, past any run. They are slots of its worker:
 * what a call holds no run can take, and the other way round. Calls take half of them at most, so that a flood of calls
 * never keeps all runs waiting. A process without a worker has the same half. Of a single slot a run has its turn after
 * each call.
 */
export class CallSlots {
  /** Slots that calls may take. */
  readonly limit: number;
  /** How many slots runs take now; set by the worker of the process. */
  busy: () => number = () => 0;
  /**
   * Called when a call gives its slot back; set by the worker of the process. Where it is the only slot, calls that wait
   * are not offered it before: see {@link offer}.
   */
  onFree: (() => void) | null = null;
  readonly #size: number;
  readonly #clock: Clock;
  readonly #waiting: { readonly go: () => void }[] = [];
  #taken = 0;

  /** @param size slots of the process, `SVC_WORKER_CONCURRENCY` */
  constructor(size: number, clock: Clock) {
    this.#size = size;
    this.#clock = clock;
    this.limit = Math.max(1, Math.floor(size / 2));
  }

  /** Slots that calls take now. */
  get taken(): number {
    return this.#taken;
  }

  /**
   * Takes a slot, and waits for one for some seconds where there is none.
   *
   * @param signal aborted once nobody waits for the call
   * @returns gives the slot back, a second time does nothing; null where none became free
   */
  async take(signal: AbortSignal): Promise<(() => void) | null> {
    if (this.#isFree) return this.#hold();
    if (this.#waiting.length >= MOST_WAITING || signal.aborted) return null;
    return new Promise((resolve) => {
      const end = (found: (() => void) | null): void => {
        cancel();
        signal.removeEventListener('abort', leave);
        const at = this.#waiting.indexOf(entry);
        if (at >= 0) this.#waiting.splice(at, 1);
        resolve(found);
      };
      const entry = { go: () => end(this.#hold()) };
      const leave = (): void => end(null);
      const cancel = this.#clock.after(PATIENCE, leave);
      signal.addEventListener('abort', leave, { once: true });
      this.#waiting.push(entry);
    });
  }

  /** Lets those go on who wait: a run has given its slot back. */
  offer(): void {
    while (this.#isFree) {
      const [first] = this.#waiting;
      if (first === undefined) return;
      first.go();
    }
  }

  get #isFree(): boolean {
    return this.#taken < this.limit && this.#taken + this.busy() < this.#size;
  }

  #hold(): () => void {
    this.#taken += 1;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#taken -= 1;
      if (this.onFree === null || this.limit < this.#size) this.offer();
      this.onFree?.();
    };
  }
}
