import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { isSystemEvent } from './client-event.ts';
import type { LogParts } from './log-parts.ts';
import { laterPosition } from './position.ts';

/** The most events that one check reads. */
const PAGE = 500;

/**
 * Finds out whether a quiet subscription is alive. As long as this process knows of no event beyond those delivered, it
 * only reads the position of the last event, at intervals. Otherwise it reads the log from the last delivered event.
 * This read shows whether the subscription lacks an event. Events of the engine itself do not count, because
 * subscriptions leave them out.
 */
export class SilenceCheck {
  readonly #parts: Pick<LogParts, 'reader' | 'timings' | 'highWaterMark'>;
  readonly #onResult: () => void;
  #running = false;
  /** When an event last arrived, and when the log was last checked, by the monotonic clock. */
  #quietSince = performance.now();
  #lookedAt = performance.now();
  #nothingUpTo: Position = BEGINNING;
  #missing: { readonly position: Position; readonly since: number } | undefined;
  #failure: unknown;
  #isComplete = false;
  #position: Position;

  /** @param position where the subscription started */
  constructor(
    parts: Pick<LogParts, 'reader' | 'timings' | 'highWaterMark'>,
    position: Position,
    onResult: () => void,
  ) {
    this.#parts = parts;
    this.#position = position;
    this.#onResult = onResult;
  }

  /** Why the log could not be read; the subscription is then not trusted either. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Up to here there is no event that the subscription has not delivered. */
  get nothingUpTo(): Position {
    return this.#nothingUpTo;
  }

  /** Whether the last check of the log found that the subscription lacks no event. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether an event found by a read has been missing for longer than `silenceMs`. */
  get isSilent(): boolean {
    const { silenceMs } = this.#parts.timings;
    return this.#missing !== undefined && performance.now() - this.#missing.since >= silenceMs;
  }

  /** Notes the position of the subscription. */
  passed(position: Position): void {
    this.#position = position;
    this.#quietSince = performance.now();
    if (this.#missing !== undefined) {
      // Restarts the clock for an event that is still missing, as this process may have been busy.
      const isMissing = position < this.#missing.position;
      this.#missing = isMissing
        ? { position: this.#missing.position, since: this.#quietSince }
        : undefined;
    }
  }

  /**
   * Starts a check if one is due and none is running. Call when nothing is buffered.
   * @returns milliseconds until the next call
   */
  look(): number {
    const { probeMs, heartbeatMs } = this.#parts.timings;
    const now = performance.now();
    const last = Math.max(this.#quietSince, this.#lookedAt);
    const due = last + (this.#isBehind() ? probeMs : heartbeatMs) - now;
    if (this.#running || due > 0) return probeMs;
    this.#running = true;
    void this.#compare();
    return probeMs;
  }

  /** Whether this process knows of a later event, because of an append or a read. */
  #isBehind(): boolean {
    return this.#parts.highWaterMark.seen > laterPosition(this.#position, this.#nothingUpTo);
  }

  async #compare(): Promise<void> {
    const { reader } = this.#parts;
    const after = laterPosition(this.#position, this.#nothingUpTo);
    let missing: Position | undefined;
    let seen = after;
    let count = 0;
    try {
      if (!this.#isBehind() && (await reader.end()) <= after) {
        this.#isComplete = true;
        return;
      }
      await reader.forwards(after, PAGE, (event, position) => {
        if (!isSystemEvent(event)) {
          missing = position;
          return 'enough';
        }
        seen = position;
        count += 1;
        return count < PAGE ? 'more' : 'enough';
      });
      this.#nothingUpTo = laterPosition(this.#nothingUpTo, seen);
      this.#isComplete = missing === undefined;
      if (missing === undefined) {
        this.#missing = undefined;
      } else if (missing > this.#position) {
        this.#missing ??= { position: missing, since: performance.now() };
      }
    } catch (error) {
      this.#failure = error;
    } finally {
      this.#lookedAt = performance.now();
      this.#running = false;
      this.#onResult();
    }
  }
}
