import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { laterPosition } from './position.ts';
import type { LogReader } from './log-reader.ts';
import { isSystemEvent, type ClientEvent } from './client-event.ts';
import type { Timings } from './connecting/timings.ts';

/** Events that one check reads at most. */
const PAGE = 500;

/**
 * Compares a quiet subscription with the log by reading it. This shows what the client's subscription does not: that it
 * has caught up, that everything since was filtered out, or that it is dead although connected.
 */
export class Probe {
  readonly #reader: LogReader;
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

  /** @param of.end where the log ended when the subscription began */
  constructor(
    reader: LogReader,
    timings: Timings,
    of: { readonly end: Position; readonly prefixes: readonly string[] | undefined },
    onResult: () => void,
  ) {
    this.#reader = reader;
    this.#timings = timings;
    this.#end = of.end;
    this.#prefixes = of.prefixes;
    this.#onResult = onResult;
    this.#next = performance.now() + timings.settleMs;
  }

  /** Why the log could not be read; the subscription is then not trusted either. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Up to here there is no event for this subscription that it has not received. */
  get nothingUpTo(): Position {
    return this.#nothingUpTo;
  }

  /** Whether an event found by a read has been missing for longer than `silenceMs`. */
  get silent(): boolean {
    return (
      this.#owed !== undefined && performance.now() - this.#owed.since >= this.#timings.silenceMs
    );
  }

  /** Notes how far the consumer is. */
  passed(position: Position): void {
    this.#position = position;
    if (this.#owed !== undefined) {
      // Restart the clock for an event that is still missing: the consumer may have been busy.
      const kept = position < this.#owed.position;
      this.#owed = kept ? { position: this.#owed.position, since: performance.now() } : undefined;
    }
    // A busy subscription is never checked; it has caught up once it passes the end as of its start.
    if (!this.#everCaughtUp && position >= this.#end) this.#caughtUp = true;
    const soonest = performance.now() + this.#timings.settleMs;
    this.#next = this.#everCaughtUp ? Math.max(this.#next, soonest) : soonest;
  }

  /** Whether it has newly caught up. Resets the answer. */
  takeCaughtUp(): boolean {
    if (!this.#caughtUp) return false;
    this.#caughtUp = false;
    this.#everCaughtUp = true;
    const position = laterPosition(this.#position, this.#nothingUpTo);
    if (position === this.#announced) return false;
    this.#announced = position;
    return true;
  }

  /**
   * Starts a check if one is due and none is running. Call when nothing is buffered.
   * @returns milliseconds until the next call
   */
  look(position: Position): number {
    this.#position = laterPosition(this.#position, position);
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
      const atEnd = await this.#reader.forwards(after, PAGE, (event, position) => {
        if (this.#matches(event)) {
          owed = position;
          return 'enough';
        }
        seen = position;
        count += 1;
        return count < PAGE ? 'more' : 'enough';
      });
      this.#nothingUpTo = laterPosition(this.#nothingUpTo, seen);
      if (owed === undefined) {
        this.#owed = undefined;
        this.#caughtUp = atEnd;
      } else if (owed > this.#position) {
        this.#owed ??= { position: owed, since: performance.now() };
      }
      // After a whole page of filtered events it continues soon.
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
