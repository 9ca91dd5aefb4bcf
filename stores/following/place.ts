import type { Position } from '../../domain/event-store.ts';

/** One follower's place in the log. */
export class Place {
  /** Everything up to here was handed over, or filtered out. */
  position: Position;
  readonly prefixes: readonly string[] | undefined;
  readonly #ended = new AbortController();
  #wake: (() => void) | undefined;
  #woken = false;

  constructor(position: Position, prefixes: readonly string[] | undefined) {
    this.position = position;
    this.prefixes = prefixes;
  }

  /** Aborted when the follower ends. */
  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  wants(stream: string): boolean {
    if (this.prefixes === undefined) return true;
    for (const prefix of this.prefixes) if (stream.startsWith(prefix)) return true;
    return false;
  }

  /** Resolves at the next {@link wake}, or at once if one came since the last time. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#woken) this.wake();
    });
  }

  /** Ends the wait: the log has grown, or the follower ends. */
  wake(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    this.#woken = wake === undefined;
    wake?.();
  }

  end(): void {
    this.#ended.abort();
    this.wake();
  }
}
