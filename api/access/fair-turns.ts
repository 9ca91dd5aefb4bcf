/** One who asks has as much waiting as may. */
export class TooManyWaiting extends Error {
  readonly limit: number;

  constructor(limit: number) {
    super(`${limit} wait already`);
    this.name = 'TooManyWaiting';
    this.limit = limit;
  }
}

/**
 * Lets work be done that anyone may ask for: so much of it at a time, and of all who wait each has its turn after the
 * others. Whoever asks for a thousand pieces at once waits for them; of anybody else's, one of them goes before at most.
 */
export class FairTurns {
  readonly #atOnce: number;
  #underWay = 0;
  /** What waits, by who asked for it. Whose turn is next comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();

  /** @param atOnce pieces of work under way at a time */
  constructor(atOnce: number) {
    this.#atOnce = atOnce;
  }

  /**
   * What the work gives or throws, once it has had its turn.
   * @param mostWaiting pieces that may wait for the one who asks
   * @throws TooManyWaiting where it is to wait, and there is no room
   */
  async take<T>(who: string, mostWaiting: number, work: () => Promise<T>): Promise<T> {
    if (this.#underWay < this.#atOnce) this.#underWay += 1;
    else await this.#turnOf(who, mostWaiting);
    try {
      return await work();
    } finally {
      this.#handOn();
    }
  }

  #turnOf(who: string, mostWaiting: number): Promise<void> {
    const queue = this.#waiting.get(who) ?? [];
    if (queue.length >= mostWaiting) throw new TooManyWaiting(mostWaiting);
    this.#waiting.set(who, queue);
    return new Promise((resolve) => queue.push(resolve));
  }

  /** To the one whose turn it is, who then comes last. */
  #handOn(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#underWay -= 1;
      return;
    }
    const [who, [begin, ...rest]] = next;
    this.#waiting.delete(who);
    if (rest.length > 0) this.#waiting.set(who, rest);
    begin?.();
  }
}
