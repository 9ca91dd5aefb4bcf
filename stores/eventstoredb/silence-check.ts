import { BEGINNING, type Position } from '../../domain/event-store.ts';
import { isSystemEvent } from './client-event.ts';
import type { LogParts } from './log-parts.ts';
import { laterPosition } from './position.ts';

/** Events that one check reads at most. */
const PAGE = 500;

/**
 * Finds out whether a quiet subscription is alive. While this process has seen nothing of the log beyond what the
 * subscription delivered, nothing is read but the position of the last event, once in a while. Otherwise the log is read
 * from there. That shows an event that the subscription lacks, or that all are the engine's own, which it leaves out.
 */
export class SilenceCheck {
  readonly #parts: Pick<LogParts, 'reader' | 'timings' | 'highWaterMark'>;
  readonly #onResult: () => void;
  #running = false;
  /** By the monotonic clock: when something last came, and when the log was last looked at. */
  #quietSince = performance.now();
  #lookedAt = performance.now();
  #nothingUpTo: Position = BEGINNING;
  #owed: { readonly position: Position; readonly since: number } | undefined;
  #failure: unknown;
  #isComplete = false;
  #position: Position;

  /** @param position where the subscription began */
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

  /** Whether the last look at the log found nothing that the subscription lacks. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  /** Whether an event found by a read has been missing for longer than `silenceMs`. */
  get isSilent(): boolean {
    const { silenceMs } = this.#parts.timings;
    return this.#owed !== undefined && performance.now() - this.#owed.since >= silenceMs;
  }

  /** Notes how far the subscription is. */
  passed(position: Position): void {
    this.#position = position;
    this.#quietSince = performance.now();
    if (this.#owed !== undefined) {
      // Restart the clock for an event that is still missing: this process may have been busy.
      const isMissing = position < this.#owed.position;
      this.#owed = isMissing
        ? { position: this.#owed.position, since: this.#quietSince }
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

  /** Whether this process knows of something beyond, by an append or a read. */
  #isBehind(): boolean {
    return this.#parts.highWaterMark.seen > laterPosition(this.#position, this.#nothingUpTo);
  }

  async #compare(): Promise<void> {
    const { reader } = this.#parts;
    const after = laterPosition(this.#position, this.#nothingUpTo);
    let owed: Position | undefined;
    let seen = after;
    let count = 0;
    try {
      if (!this.#isBehind() && (await reader.end()) <= after) {
        this.#isComplete = true;
        return;
      }
      await reader.forwards(after, PAGE, (event, position) => {
        if (!isSystemEvent(event)) {
          owed = position;
          return 'enough';
        }
        seen = position;
        count += 1;
        return count < PAGE ? 'more' : 'enough';
      });
      this.#nothingUpTo = laterPosition(this.#nothingUpTo, seen);
      this.#isComplete = owed === undefined;
      if (owed === undefined) this.#owed = undefined;
      else if (owed > this.#position) this.#owed ??= { position: owed, since: performance.now() };
    } catch (error) {
      this.#failure = error;
    } finally {
      this.#lookedAt = performance.now();
      this.#running = false;
      this.#onResult();
    }
  }
}
