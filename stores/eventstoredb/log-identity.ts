import { EventStoreError } from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { pause } from '../waiting.ts';
import type { Timings } from './connecting/timings.ts';
import type { HighWaterMark } from './high-water-mark.ts';
import type { LogParts } from './log-parts.ts';
import type { LogReader } from './log-reader.ts';

/** Milliseconds between checks of a log that lacks events seen before. */
const CHECK_INTERVAL_MS = 250;

/**
 * Detects that the server came back with another log, such as an older state from a backup. This process then holds
 * state from events that no longer exist, so nothing may be written.
 *
 * A log does not change under a connection, so the check runs only after a lost one. It compares the furthest event seen.
 */
export class LogIdentity {
  readonly #reader: LogReader;
  readonly #highWaterMark: HighWaterMark;
  readonly #timings: Timings;
  readonly #telemetry: Telemetry;
  /** The number of lost connections, and how many of them the last comparison covers. */
  #lost = 0;
  #compared = 0;
  #comparing: Promise<void> | undefined;
  #fault: EventStoreError | undefined;

  constructor(parts: Pick<LogParts, 'reader' | 'highWaterMark' | 'timings' | 'telemetry'>) {
    this.#reader = parts.reader;
    this.#highWaterMark = parts.highWaterMark;
    this.#timings = parts.timings;
    this.#telemetry = parts.telemetry;
  }

  /** A connection was lost; the next one may reach another log. */
  connectionLost(): void {
    this.#lost += 1;
    this.#highWaterMark.isCertain = false;
  }

  /** The error for a replaced log; undefined while none was detected. */
  get fault(): EventStoreError | undefined {
    return this.#fault;
  }

  /**
   * Compares the log if a connection has been lost since the last comparison. A cluster node may briefly lack what
   * another has shown, so the check is repeated for a while.
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
    // A log already found to be replaced is checked only once.
    const end = performance.now() + (this.#fault === undefined ? this.#timings.behindMs : 0);
    while (!(await this.#isSame())) {
      if (performance.now() >= end) throw this.#refuse();
      await pause(CHECK_INTERVAL_MS);
    }
    this.#compared = upTo;
    this.#fault = undefined;
    this.#highWaterMark.isCertain = upTo === this.#lost;
  }

  async #isSame(): Promise<boolean> {
    const { seen, anchor } = this.#highWaterMark;
    if ((await this.#reader.end()) < seen) return false;
    if (anchor === undefined) return true;
    try {
      return (await this.#reader.idAt(anchor.position)) === anchor.id;
    } catch (error) {
      if (!(error instanceof EventStoreError && error.code === 'UNAVAILABLE')) throw error;
      // Servers report a position without an event as a general error. An unreachable server throws here.
      await this.#reader.end();
      return false;
    }
  }

  #refuse(): EventStoreError {
    const { seen } = this.#highWaterMark;
    if (this.#fault === undefined) {
      const what = 'the event log was replaced by another one, or by an older state of itself';
      this.#telemetry.log.error(`${what}; restart this process`, { lacks: seen });
    }
    this.#fault ??= new EventStoreError(
      'UNAVAILABLE',
      `the event log lacks events that this process has seen (up to ${seen}), so it was replaced by another one or by an older state: restart this process`,
    );
    return this.#fault;
  }
}
