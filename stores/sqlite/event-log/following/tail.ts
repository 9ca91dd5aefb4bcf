import { EventStoreError, type RecordedEvent } from '../../../../domain/event-store.ts';
import type { EndListener, LogEntry, LogPage } from '../../../../domain/log-engine.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { LazyEntry } from '../../../following/lazy-entry.ts';
import { formatPosition } from '../position.ts';
import { timestampOf } from '../raw-event.ts';
import type { LogReader } from '../reading/reader.ts';
import type { Committed, CommittedAppend } from '../writing/writer.ts';

/** The message that reports a failure. */
const UNREADABLE = 'could not follow the event log; retrying';

/** Milliseconds for which polls are skipped at most while this process writes, or another announced a notice. */
const MAX_SKIPPED_POLL_MS = 500;
/** Milliseconds within which an announced notice arrives. */
const NOTICE_DELAY_MS = 100;
/**
 * The most events of others before this process's commit that are read separately. If there are more, the commit is
 * read page by page with them.
 */
const MAX_EVENTS_READ_AHEAD_OF_COMMIT = 500;

/** The growing end of the log. This process's own appends are delivered without reading them again. */
export class Tail {
  readonly #reader: LogReader;
  readonly #telemetry: Telemetry;
  readonly #isWriting: () => boolean;
  readonly #pollInterval: number;
  /** The listener; null while there is none. */
  #listener: EndListener | null = null;
  #reject: (error: unknown) => void = () => {};
  /** The listener has received everything up to here. */
  #position = 0;
  #seenVersion: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Consecutive polls skipped. */
  #skippedPolls = 0;
  /** Whether the next page will be read in the next turn of the event loop. */
  #scheduled = false;
  /** The last position announced by another process. */
  #announced = 0;
  /** No poll before this time, because another process announced a notice. By the monotonic clock. */
  #noPollBefore = 0;
  /** Whether there may be more than was announced. */
  #mayBeMore = false;

  /**
   * @param options.isWriting whether commits of this process are on their way here. Polling then would decode them a
   *   second time; commits of other processes show as a gap before them
   * @param options.pollInterval milliseconds between polls, which are most of an idle process's work
   */
  constructor(
    reader: LogReader,
    options: {
      readonly telemetry: Telemetry;
      readonly isWriting: () => boolean;
      readonly pollInterval: number;
    },
  ) {
    this.#reader = reader;
    this.#telemetry = options.telemetry;
    this.#isWriting = options.isWriting;
    this.#pollInterval = options.pollInterval;
  }

  /** See the port's `followEnd`; one at a time. @throws EventStoreError `UNAVAILABLE` if the log can't be read */
  async follow(listener: EndListener, signal: AbortSignal): Promise<void> {
    if (this.#listener !== null) throw new Error('the end of the log is being followed already');
    if (signal.aborted) return;
    this.#position = this.#reader.head();
    this.#seenVersion = undefined;
    listener.begins(formatPosition(this.#position));
    this.#listener = listener;
    this.#timer = setInterval(() => this.#poll(), this.#pollInterval).unref();
    try {
      await new Promise<void>((resolve, reject) => {
        this.#reject = reject;
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    } finally {
      this.#listener = null;
      clearInterval(this.#timer);
    }
  }

  /** Delivers a commit of this process. */
  committed({ first, last, createdAt, appends }: Committed): void {
    if (this.#listener === null || last <= this.#position) return;
    // Another process wrote earlier events, which must be delivered first.
    if (first !== this.#position + 1 && !this.#readUpTo(first - 1)) {
      this.noticed();
      return;
    }
    const createdText = timestampOf(createdAt);
    const entries: LogEntry[] = [];
    for (const append of appends) addEntries(entries, append, createdText);
    this.#position = last;
    this.#listener.grows({ entries, upTo: formatPosition(last) });
  }

  /**
   * Another process may have committed.
   * @param upTo its last position; default: unknown. Events up to it are read in the next turn of the event loop, after
   *   this process's earlier commits
   */
  noticed(upTo = Number.NaN): void {
    if (this.#listener === null || upTo <= this.#position) return;
    if (Number.isNaN(upTo)) this.#mayBeMore = true;
    else this.#announced = Math.max(this.#announced, upTo);
    if (this.#scheduled) return;
    if (this.#mayBeMore) this.#pump();
    else this.#pumpSoon();
  }

  /** Notes a known end of the log. This process's own commits arrive anyway; commits of others are read now. */
  hasReached(head: number): void {
    if (!this.#isWriting()) this.noticed(head);
  }

  /** Another process will send a notice within 100 ms. A hint, like all notices. */
  expectNotice(): void {
    this.#noPollBefore = performance.now() + NOTICE_DELAY_MS;
  }

  #poll(): void {
    const isNoticeExpected = this.#isWriting() || performance.now() < this.#noPollBefore;
    if (isNoticeExpected && this.#skippedPolls * this.#pollInterval < MAX_SKIPPED_POLL_MS) {
      this.#skippedPolls += 1;
      return;
    }
    this.#skippedPolls = 0;
    try {
      const version = this.#reader.version();
      if (version === this.#seenVersion) return;
      this.#seenVersion = version;
    } catch (error) {
      this.#failed(error);
      return;
    }
    this.noticed();
  }

  /** Reads one page, and continues in another turn of the event loop while there is more. */
  #pump(): void {
    const all = this.#mayBeMore;
    const announced = this.#announced;
    this.#mayBeMore = false;
    this.#announced = 0;
    if (!all && announced <= this.#position) return;
    const page = this.#read(all ? undefined : announced);
    if (page === undefined || !this.#deliver(page)) return;
    this.#mayBeMore = all;
    if (all || this.#position < announced) {
      this.#announced = announced;
      this.#pumpSoon();
    }
  }

  #pumpSoon(): void {
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#mayBeMore && this.#isWriting()) {
        // The rest shows as a gap before this process's commits, or the next poll finds it.
        this.#mayBeMore = false;
        this.#seenVersion = undefined;
      }
      if (this.#listener !== null) this.#pump();
    });
  }

  /** @returns whether everything up to a position has been delivered; false where that is too much at once */
  #readUpTo(position: number): boolean {
    if (position <= this.#position || position - this.#position > MAX_EVENTS_READ_AHEAD_OF_COMMIT)
      return false;
    const page = this.#read(position);
    if (page !== undefined) this.#deliver(page);
    return this.#position === position;
  }

  /** @returns whether the page held something new */
  #deliver(page: LogPage): boolean {
    const upTo = Number(page.upTo);
    if (upTo <= this.#position) return false;
    this.#position = upTo;
    this.#listener?.grows(page);
    return true;
  }

  /** @param upTo default: the end of the log */
  #read(upTo: number | undefined): LogPage | undefined {
    try {
      const page = this.#reader.page(this.#position, { upTo });
      this.#telemetry.failures.worked(UNREADABLE);
      return page;
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  /** Reports an unreadable log once, and retries at the next poll. Any other error ends this. */
  #failed(cause: unknown): void {
    this.#seenVersion = undefined;
    if (cause instanceof EventStoreError && cause.code === 'UNAVAILABLE') {
      this.#telemetry.failures.failed(UNREADABLE, cause);
      return;
    }
    this.#reject(cause);
  }
}

/**
 * Adds the events of an append. They are built when needed, with the same key order as events read from the file, so
 * that V8 gives them one shape.
 */
function addEntries(
  entries: LogEntry[],
  { stream, events, bytes, revision, position }: CommittedAppend,
  createdAt: string,
): void {
  const first = revision - events.length + 1;
  const firstPosition = position - events.length + 1;
  const size = Math.ceil(bytes / events.length);
  for (const [index, { id, type, data, metadata }] of events.entries()) {
    const place = formatPosition(firstPosition + index);
    const build = (): RecordedEvent => {
      const at = first + index;
      const event = { id, stream, revision: at, position: place, createdAt, type, data, metadata };
      return event as RecordedEvent;
    };
    entries.push(new LazyEntry(stream, place, size, build));
  }
}
