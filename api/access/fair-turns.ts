/** A caller has reached its limit of waiting work. */
export class TooManyWaitingError extends Error {
  readonly limit: number;

  constructor(limit: number) {
    super(`${limit} requests of this caller are waiting already`);
    this.name = 'TooManyWaitingError';
    this.limit = limit;
  }
}

/** Limits how much work is done at a time. Waiting callers take turns, regardless of how much work each requests. */
export class FairTurns {
  readonly #maxConcurrent: number;
  #running = 0;
  /** Waiting work by its caller; the next caller comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();

  constructor(maxConcurrent: number) {
    this.#maxConcurrent = maxConcurrent;
  }

  /**
   * Does work in its turn.
   * @param maxWaiting pieces of work that may wait for this caller
   * @throws TooManyWaitingError when there is no room to wait
   */
  async take<T>(caller: string, maxWaiting: number, work: () => Promise<T>): Promise<T> {
    const end = await this.start(caller, maxWaiting);
    try {
      return await work();
    } finally {
      end();
    }
  }

  /** Waits for a turn, as {@link take} does. @returns a function that ends the turn; to be called once */
  async start(caller: string, maxWaiting: number): Promise<() => void> {
    if (this.#running < this.#maxConcurrent) this.#running += 1;
    else await this.#turnOf(caller, maxWaiting);
    return () => this.#startNext();
  }

  #turnOf(caller: string, maxWaiting: number): Promise<void> {
    const queue = this.#waiting.get(caller) ?? [];
    if (queue.length >= maxWaiting) throw new TooManyWaitingError(maxWaiting);
    this.#waiting.set(caller, queue);
    return new Promise((resolve) => queue.push(resolve));
  }

  /** The caller whose turn it is then moves to the end. */
  #startNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#running -= 1;
      return;
    }
    const [caller, [begin, ...rest]] = next;
    this.#waiting.delete(caller);
    if (rest.length > 0) this.#waiting.set(caller, rest);
    begin?.();
  }
}
