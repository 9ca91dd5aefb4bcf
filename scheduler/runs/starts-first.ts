/** Starts that are on their way to the log, and who waits for them. */
interface Wave {
  left: number;
  /** More starts are about to be made. */
  held: boolean;
  readonly over: Promise<void>;
  readonly end: () => void;
}

/**
 * Where many runs are due at one instant, the ends of the first would take the time in which the last could begin: they
 * wait until the starts that were under way before them stand in the log. What comes after that is not waited for, so
 * that an end is put off once, by one turn of the log.
 */
export class StartsFirst {
  /** Takes in what begins now. */
  private open: Wave | null = null;
  /** Somebody waits for it, and nothing is added. */
  private closed: Wave | null = null;

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
    return () => {
      wave.held = false;
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
