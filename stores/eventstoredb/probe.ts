import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { later } from './position.ts';
import type { Reading } from './reading.ts';
import { isSystemEvent, type ClientEvent } from './recorded.ts';
import type { Timings } from './connecting/timings.ts';

/** How many events one look goes through at most. */
const PAGE = 500;

/**
 * Compares a quiet subscription with the log itself, by a read. This finds out three things that the
 * client's subscription does not say (older servers send no sign of it, and an idle filtered one may
 * hear nothing for days): that it has caught up, that what came since was all filtered out, and that
 * it is dead though still connected.
 */
export class Probe {
  readonly #reading: Reading;
  readonly #timings: Timings;
  readonly #end: Position;
  readonly #prefixes: readonly string[] | undefined;
  readonly #onResult: () => void;
  #running = false;
  #next: number;
  #nothingUpTo: Position = BEGINNING;
  #caughtUp = false;
  #everCaughtUp = false;
  #owed: { readonly position: Position; readonly since: number } | undefined;
  #failure: unknown;
  #announced: Position | undefined;
  #position: Position = BEGINNING;

  /** @param of.end where the log ended when the subscription was made */
  constructor(
    reading: Reading,
    timings: Timings,
    of: { readonly end: Position; readonly prefixes: readonly string[] | undefined },
    onResult: () => void,
  ) {
    this.#reading = reading;
    this.#timings = timings;
    this.#end = of.end;
    this.#prefixes = of.prefixes;
    this.#onResult = onResult;
    this.#next = performance.now() + timings.settleMs;
  }

  /** Why the log could not be read. The subscription is then not to be trusted either. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Nothing for this subscription stands between what it had and this position. */
  get nothingUpTo(): Position {
    return this.#nothingUpTo;
  }

  /** Whether an event that a read has shown has not come for longer than `silenceMs`. */
  get silent(): boolean {
    return (
      this.#owed !== undefined && performance.now() - this.#owed.since >= this.#timings.silenceMs
    );
  }

  /** Tells it what the consumer has handled. */
  passed(position: Position): void {
    this.#position = position;
    if (this.#owed !== undefined) {
      // What is still owed has a new term: the consumer may have been busy, not the server silent.
      const kept = position < this.#owed.position;
      this.#owed = kept ? { position: this.#owed.position, since: performance.now() } : undefined;
    }
    // A busy subscription is never quiet enough to be looked at: it has caught up with the end as that
    // was when it began.
    if (!this.#everCaughtUp && position >= this.#end) this.#caughtUp = true;
    const soonest = performance.now() + this.#timings.settleMs;
    this.#next = this.#everCaughtUp ? Math.max(this.#next, soonest) : soonest;
  }

  /** Whether it has caught up at a position not told before; asking takes the answer away. */
  takeCaughtUp(): boolean {
    if (!this.#caughtUp) return false;
    this.#caughtUp = false;
    this.#everCaughtUp = true;
    const position = later(this.#position, this.#nothingUpTo);
    if (position === this.#announced) return false;
    this.#announced = position;
    return true;
  }

  /**
   * Looks, if it is time and no look is under way, and says how many milliseconds to wait before the
   * next call. To be called when nothing is buffered.
   */
  look(position: Position): number {
    this.#position = later(this.#position, position);
    if (this.#running) return this.#timings.probeMs;
    const wait = this.#next - performance.now();
    if (wait > 0) return wait;
    this.#running = true;
    void this.#compare(this.#position);
    return this.#timings.probeMs;
  }

  async #compare(after: Position): Promise<void> {
    let owed: Position | undefined;
    let seen = after;
    let count = 0;
    try {
      const atEnd = await this.#reading.forwards(after, PAGE, (event, position) => {
        if (this.#matches(event)) {
          owed = position;
          return 'enough';
        }
        seen = position;
        count += 1;
        return count < PAGE ? 'more' : 'enough';
      });
      this.#nothingUpTo = later(this.#nothingUpTo, seen);
      if (owed === undefined) {
        this.#owed = undefined;
        this.#caughtUp = atEnd;
      } else if (owed > this.#position) {
        this.#owed ??= { position: owed, since: performance.now() };
      }
      // After a whole page of what is filtered out it goes on soon, from where the server may be by then.
      const goesOn = owed === undefined && !atEnd;
      this.#next = performance.now() + (goesOn ? this.#timings.settleMs : this.#timings.probeMs);
    } catch (error) {
      this.#failure = error;
    } finally {
      this.#running = false;
      this.#onResult();
    }
  }

  #matches(event: ClientEvent): boolean {
    if (isSystemEvent(event)) return false;
    return this.#prefixes?.some((prefix) => event.streamId.startsWith(prefix)) ?? true;
  }
}
