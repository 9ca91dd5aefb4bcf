import { EventStoreError } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Horizon } from './horizon.ts';
import { pause } from './connecting/pause.ts';
import type { Reading } from './reading.ts';
import type { Timings } from './connecting/timings.ts';

/** Milliseconds between two looks at a log that lacks what was seen of it. */
const BETWEEN = 250;

/**
 * Whether the log is still the one that this process has worked on. A server may come back with an older state of it, out
 * of a backup, and then go on from there: what this process has in its memory, it has of events that never were. Nothing
 * may be written on the strength of that.
 *
 * A log does not change under a connection, so it is looked at only when one was lost: whether the furthest event that
 * was seen stands where it stood.
 */
export class Continuity {
  readonly #reading: Reading;
  readonly #horizon: Horizon;
  readonly #timings: Timings;
  readonly #telemetry: Telemetry;
  /** How often a connection was lost, and up to which of these the log has been compared. */
  #lost = 0;
  #compared = 0;
  #comparing: Promise<void> | undefined;
  #fault: EventStoreError | undefined;

  constructor(parts: {
    readonly reading: Reading;
    readonly horizon: Horizon;
    readonly timings: Timings;
    readonly telemetry: Telemetry;
  }) {
    this.#reading = parts.reading;
    this.#horizon = parts.horizon;
    this.#timings = parts.timings;
    this.#telemetry = parts.telemetry;
  }

  /** A connection was lost: behind the next one there may be another log. */
  doubt(): void {
    this.#lost += 1;
    this.#horizon.isCertain = false;
  }

  /** Why nothing is written, where that was found; undefined where it was not. */
  get fault(): EventStoreError | undefined {
    return this.#fault;
  }

  /**
   * Compares the log, where a connection was lost since that was done. A node of a cluster may know less of the log for a
   * moment than another has said before: so it is looked at for a while before it counts as another.
   * @throws EventStoreError `UNAVAILABLE`
   */
  async check(): Promise<void> {
    while (this.#compared < this.#lost) {
      this.#comparing ??= this.#compare().finally(() => (this.#comparing = undefined));
      await this.#comparing;
    }
  }

  async #compare(): Promise<void> {
    const upTo = this.#lost;
    // Of one that was found to be another, each look is the only one.
    const end = performance.now() + (this.#fault === undefined ? this.#timings.behindMs : 0);
    while (!(await this.#isSame())) {
      if (performance.now() >= end) throw this.#refuse();
      await pause(BETWEEN);
    }
    this.#compared = upTo;
    this.#fault = undefined;
    this.#horizon.isCertain = upTo === this.#lost;
  }

  async #isSame(): Promise<boolean> {
    const { seen, anchor } = this.#horizon;
    if ((await this.#reading.end()) < seen) return false;
    if (anchor === undefined) return true;
    try {
      return (await this.#reading.idAt(anchor.position)) === anchor.id;
    } catch (error) {
      if (!(error instanceof EventStoreError && error.code === 'UNAVAILABLE')) throw error;
      // Of a place where no event begins servers say no more than that something went wrong. Away they say nothing.
      await this.#reading.end();
      return false;
    }
  }

  #refuse(): EventStoreError {
    const { seen } = this.#horizon;
    if (this.#fault === undefined) {
      const what = 'the event log was replaced by another, or by an older state of itself';
      this.#telemetry.log.error(`${what}: nothing is done until this process is started again`, {
        lacks: seen,
      });
    }
    this.#fault ??= new EventStoreError(
      'UNAVAILABLE',
      `the log lacks what this process has seen of it (${seen}), so it was replaced by another or by an older state: start this process again`,
    );
    return this.#fault;
  }
}
