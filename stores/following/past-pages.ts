import { EventStoreError, type Position } from '../../domain/event-store.ts';
import type { LogEngine, LogPage, LogPiece } from '../../domain/log-engine.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { pause, pauseAfter } from '../waiting.ts';
import type { FollowerCursor } from './follower-cursor.ts';
import { sizeOf } from './recent-events.ts';

/** The message that reports a failure. */
const UNREADABLE = 'could not read the event log; retrying';

/** Milliseconds before a failed read is retried: at first, and at most. */
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;

/** A page in memory, for followers that will soon reach the same position. */
interface KeptPage extends LogPiece {
  readonly after: Position;
  readonly prefixes: readonly string[] | undefined;
  readonly bytes: number;
}

/**
 * Reads the log before the window for followers. They share pages, so views that are filled at the same time read the
 * log once. No follower waits for another. A follower that falls behind by more than the pages in memory reads its own
 * pages.
 */
export class PastPages {
  readonly #engine: Pick<LogEngine, 'readPage'>;
  readonly #telemetry: Telemetry;
  readonly #most: number;
  readonly #readers = new Set<FollowerCursor>();
  readonly #kept: KeptPage[] = [];
  readonly #reading = new Map<Position, Promise<unknown>>();
  #bytes = 0;

  /** @param most bytes of pages kept in memory */
  constructor(engine: Pick<LogEngine, 'readPage'>, telemetry: Telemetry, most: number) {
    this.#engine = engine;
    this.#telemetry = telemetry;
    this.#most = most;
  }

  /** Notes that the follower no longer reads here. */
  leave(cursor: FollowerCursor): void {
    if (this.#readers.delete(cursor)) this.#trim();
  }

  /**
   * The next page for a follower; retried while the log can't be read. A page of another follower's read is never
   * `isLast`.
   * @returns undefined when the signal was aborted
   * @throws EventStoreError other than `UNAVAILABLE`
   */
  async next(cursor: FollowerCursor, signal: AbortSignal): Promise<LogPage | undefined> {
    this.#readers.add(cursor);
    // Between pages too, so that reading a long log leaves the event loop to others.
    await turn();
    while (!signal.aborted) {
      const kept = this.#kept.find((page) => serves(page, cursor));
      if (kept !== undefined) return { ...kept, isLast: false };
      const { position } = cursor;
      const other = this.#reading.get(position);
      if (other === undefined) return this.#read(cursor, signal);
      await other;
    }
    return undefined;
  }

  async #read(cursor: FollowerCursor, signal: AbortSignal): Promise<LogPage | undefined> {
    const { position } = cursor;
    const reading = this.#readPage(position, this.#wantedFrom(position), signal);
    const ended = reading.then(
      () => undefined,
      () => undefined,
    );
    this.#reading.set(position, ended);
    try {
      const page = await reading;
      if (page !== undefined && page.upTo > position) this.#keep(position, page);
      return page;
    } finally {
      this.#reading.delete(position);
    }
  }

  async #readPage(
    after: Position,
    prefixes: readonly string[] | undefined,
    signal: AbortSignal,
  ): Promise<LogPage | undefined> {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        const page = await this.#engine.readPage({ after, prefixes });
        this.#telemetry.failures.worked(UNREADABLE);
        return page;
      } catch (error) {
        if (!(error instanceof EventStoreError && error.code === 'UNAVAILABLE')) throw error;
        // Closing a store makes its reads fail, which is not an error.
        if (signal.aborted) return undefined;
        this.#telemetry.failures.failed(UNREADABLE, error);
        await pause(pauseAfter(failures, FIRST_RETRY_MS, MAX_RETRY_MS), signal);
      }
    }
    return undefined;
  }

  /** The prefixes of all followers that have not passed a position yet; undefined: everything. */
  #wantedFrom(position: Position): readonly string[] | undefined {
    const wanted = new Set<string>();
    for (const reader of this.#readers) {
      if (reader.position > position) continue;
      if (reader.prefixes === undefined) return undefined;
      for (const prefix of reader.prefixes) wanted.add(prefix);
    }
    return [...wanted];
  }

  #keep(after: Position, { entries, upTo, prefixes }: LogPage): void {
    if (this.#readers.size < 2) return;
    const bytes = sizeOf(entries);
    this.#kept.push({ after, entries, upTo, prefixes, bytes });
    this.#bytes += bytes;
    this.#trim();
  }

  /** Forgets pages that no follower will reach, then the oldest ones. */
  #trim(): void {
    let slowest: Position | undefined;
    for (const { position } of this.#readers) {
      if (slowest === undefined || position < slowest) slowest = position;
    }
    for (let index = 0; index < this.#kept.length;) {
      const page = this.#kept[index];
      if (page === undefined) break;
      const isNeeded = this.#readers.size > 1 && slowest !== undefined && page.upTo > slowest;
      if (isNeeded && this.#bytes <= this.#most) {
        index += 1;
        continue;
      }
      this.#kept.splice(index, 1);
      this.#bytes -= page.bytes;
    }
  }
}

function serves(page: KeptPage, { position, prefixes }: FollowerCursor): boolean {
  if (page.after > position || page.upTo <= position) return false;
  if (page.prefixes === undefined) return true;
  const within = page.prefixes;
  return prefixes?.every((prefix) => within.some((one) => prefix.startsWith(one))) ?? false;
}

/** Waits for the next turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
