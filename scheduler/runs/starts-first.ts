/** Starts that are on their way to the log, and who waits for them. */
interface Wave {
  left: number;
  /** More starts are about to be made. */
  held: boolean;
  readonly over: Promise<void>;
  readonly end: () => void;
}

/** Work is begun for so long before others get a turn on the event loop. Milliseconds. */
const TURN = 8;

/**
 * Where many runs are due at one instant, the work and the ends of the first would take the time in which the last could
 * start. So the work begins when no more starts are about to be made; and the ends wait until the starts that were under
 * way before them stand in the log. What comes after that is not waited for, so that an end is put off once, by one turn
 * of the log.
 */
export class StartsFirst {
  /** Takes in what begins now. */
  private open: Wave | null = null;
  /** Somebody waits for it, and nothing is added. */
  private closed: Wave | null = null;
  private holds = 0;
  private waiting: (() => void)[] = [];
  private isBeginning = false;

  /** A start is on its way. @returns to be called once it has come there, or has failed */
  begin(): () => void {
    const wave = (this.open ??= newWave());
    wave.left += 1;
    return () => this.settled(wave);
  }

  /**
   * More starts are about to be made, in further turns of the event loop: who waits from now on waits for them, too.
   *
   * @returns to be called once there are no more
   */
  hold(): () => void {
    const wave = (this.open ??= newWave());
    wave.left += 1;
    wave.held = true;
    this.holds += 1;
    return () => {
      wave.held = false;
      this.holds -= 1;
      this.beginSoon();
      this.settled(wave);
    };
  }

  /** Resolves when the starts that are under way now have come to the log; null where none are. */
  wait(): Promise<void> | null {
    if (this.open?.held === true) return this.open.over;
    if (this.open !== null) {
      this.closed = this.open;
      this.open = null;
    }
    return this.closed?.over ?? null;
  }

  /** Begins the work on what has started: now, or behind the starts that are about to be made, in their order. */
  whenMade(work: () => void): void {
    if (this.holds === 0 && this.waiting.length === 0) {
      work();
      return;
    }
    this.waiting.push(work);
    this.beginSoon();
  }

  /** Begins all work that waits, now. */
  beginAll(): void {
    for (const work of this.waiting.splice(0)) work();
  }

  private beginSoon(): void {
    if (this.isBeginning || this.holds > 0 || this.waiting.length === 0) return;
    this.isBeginning = true;
    setImmediate(() => {
      this.isBeginning = false;
      if (this.holds > 0) return;
      const end = performance.now() + TURN;
      let begun = 0;
      while (begun < this.waiting.length && performance.now() < end) {
        this.waiting[begun]?.();
        begun += 1;
      }
      this.waiting.splice(0, begun);
      this.beginSoon();
    });
  }

  private settled(wave: Wave): void {
    wave.left -= 1;
    if (wave.left > 0) return;
    if (this.open === wave) this.open = null;
    if (this.closed === wave) this.closed = null;
    // What was begun together begins its work first.
    setImmediate(wave.end);
  }
}

function newWave(): Wave {
  let end = (): void => {};
  const over = new Promise<void>((resolve) => (end = resolve));
  return { left: 0, held: false, over, end };
}
