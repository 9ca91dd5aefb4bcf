import type { Position, RecordedEvent } from '../../domain/event-store.ts';
import type { LogPiece } from '../../domain/log-engine.ts';

/** The part of a piece of the log that a follower takes. */
export interface FollowedEvents {
  readonly events: readonly RecordedEvent[];
  /** Why the event after these can't be read. */
  readonly failure: { readonly error: unknown } | undefined;
}

/** One follower's position in the log. */
export class FollowerCursor {
  /** Everything up to here was delivered or filtered out. */
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

  /**
   * Returns the wanted events of a piece that reaches beyond the position, and moves the position to its end.
   * @param onPassed called if there are none
   */
  take(
    { entries, upTo }: LogPiece,
    onPassed: ((position: Position) => void) | undefined,
  ): FollowedEvents {
    const before = this.position;
    const events: RecordedEvent[] = [];
    const { prefixes } = this;
    for (const entry of entries) {
      if (entry.position <= before || (prefixes !== undefined && !entry.isOf(prefixes))) continue;
      try {
        events.push(entry.event());
      } catch (error) {
        return { events, failure: { error } };
      }
    }
    if (upTo > before) {
      this.position = upTo;
      if (events.length === 0) onPassed?.(upTo);
    }
    return { events, failure: undefined };
  }

  /** Resolves at the next {@link wake}, or at once if one came since the last time. */
  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#woken) this.wake();
    });
  }

  /** Ends the wait, because the log has grown or the follower ends. */
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
