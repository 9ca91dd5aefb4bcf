/** Starts that are being appended, and the ends that wait for them. */
interface Wave {
  pending: number;
  /** More starts will follow. */
  held: boolean;
  readonly over: Promise<void>;
  readonly finish: () => void;
}

/** For how long work is started before the event loop gets a turn. Milliseconds. */
const MAX_TURN_MS = 8;

/**
 * Orders starts before ends. When many runs are due at one instant, the work and the ends of the first runs would delay
 * the starts of the last. So work begins once no more starts follow, and an end waits for the starts before it to be in
 * the log. Later starts do not delay it.
 */
export class StartsFirst {
  /** Takes new starts. */
  #open: Wave | null = null;
  /** Ends wait for it; it takes no more starts. */
  #closed: Wave | null = null;
  #holds = 0;
  #waiting: (() => void)[] = [];
  #isBeginning = false;

  /** Adds a start. @returns a function to call when the start is in the log or has failed */
  begin(): () => void {
    const wave = (this.#open ??= newWave());
    wave.pending += 1;
    return () => this.#settle(wave);
  }

  /** Makes ends wait also for starts of the next turns of the event loop. @returns a function that ends this */
  hold(): () => void {
    const wave = (this.#open ??= newWave());
    wave.pending += 1;
    wave.held = true;
    this.#holds += 1;
    return () => {
      wave.held = false;
      this.#holds -= 1;
      this.#beginSoon();
      this.#settle(wave);
    };
  }

  /** Resolves when the pending starts are in the log; null if there are none. */
  wait(): Promise<void> | null {
    if (this.#open?.held === true) return this.#open.over;
    if (this.#open !== null) {
      this.#closed = this.#open;
      this.#open = null;
    }
    return this.#closed?.over ?? null;
  }

  /** Begins work at once, or in order once no more starts follow. */
  whenStarted(work: () => void): void {
    if (this.#holds === 0 && this.#waiting.length === 0) {
      work();
      return;
    }
    this.#waiting.push(work);
    this.#beginSoon();
  }

  /** Begins all waiting work now. */
  beginAll(): void {
    for (const work of this.#waiting.splice(0)) work();
  }

  #beginSoon(): void {
    if (this.#isBeginning || this.#holds > 0 || this.#waiting.length === 0) return;
    this.#isBeginning = true;
    setImmediate(() => {
      this.#isBeginning = false;
      if (this.#holds > 0) return;
      const end = performance.now() + MAX_TURN_MS;
      let begun = 0;
      while (begun < this.#waiting.length && performance.now() < end) {
        this.#waiting[begun]?.();
        begun += 1;
      }
      this.#waiting.splice(0, begun);
      this.#beginSoon();
    });
  }

  #settle(wave: Wave): void {
    wave.pending -= 1;
    if (wave.pending > 0) return;
    if (this.#open === wave) this.#open = null;
    if (this.#closed === wave) this.#closed = null;
    // Runs that started together begin their work before the ends.
    setImmediate(wave.finish);
  }
}

function newWave(): Wave {
  let finish = (): void => {};
  const over = new Promise<void>((resolve) => (finish = resolve));
  return { pending: 0, held: false, over, finish };
}
