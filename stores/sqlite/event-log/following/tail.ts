import { EventStoreError, type RecordedEvent } from '../../../../domain/event-store.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { formatPosition } from '../position.ts';
import { timestampOf } from '../raw-event.ts';
import type { LogReader, Page } from '../reading/reader.ts';
import type { Delivery, Subscriber } from './subscriber.ts';
import type { Committed, CommittedAppend } from '../writing/writer.ts';

/** What a failure is reported as. */
const UNREADABLE = 'could not follow the event log; retrying';

/** Milliseconds for which polls are skipped at most while this process writes, or another announced a notice. */
const MAX_SKIPPED_POLL_MS = 500;
/** Milliseconds within which an announced notice arrives. */
const NOTICE_DELAY_MS = 100;
/** Others' events before this process's commit that are read separately; more are read page by page, with it. */
const MAX_EVENTS_READ_AHEAD_OF_COMMIT = 500;

/**
 * The growing end of the log, shared by all live subscriptions of this process, so that each event is read and decoded
 * once. This process's own appends are delivered without reading them again.
 */
export class Tail {
  readonly #reader: LogReader;
  readonly #telemetry: Telemetry;
  readonly #isWriting: () => boolean;
  readonly #pollInterval: number;
  readonly #subscribers = new Set<Subscriber>();
  /** Every live subscriber was offered everything up to here. Without any, the last commit. */
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

  /** Makes a subscriber live that has read the file to its end, unless the tail is further. @returns whether it is live */
  join(subscriber: Subscriber): boolean {
    if (this.#subscribers.size === 0) {
      this.#position = Math.max(this.#position, subscriber.position);
    }
    if (subscriber.position < this.#position) return false;
    subscriber.live = true;
    this.#subscribers.add(subscriber);
    this.#timer ??= setInterval(() => this.#poll(), this.#pollInterval).unref();
    return true;
  }

  leave(subscriber: Subscriber): void {
    subscriber.live = false;
    this.#subscribers.delete(subscriber);
    if (this.#subscribers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Delivers a commit of this process. */
  committed({ first, last, createdAt, appends }: Committed): void {
    if (last <= this.#position) return;
    if (this.#subscribers.size === 0) {
      this.#position = last;
      return;
    }
    // Another process wrote before, which must be delivered first.
    if (first !== this.#position + 1 && !this.#readUpTo(first - 1)) {
      this.noticed();
      return;
    }
    const createdText = timestampOf(createdAt);
    const offered: { readonly subscriber: Subscriber; readonly events: RecordedEvent[] }[] = [];
    for (const subscriber of this.#subscribers) offered.push({ subscriber, events: [] });
    for (const append of appends) {
      let recorded: readonly RecordedEvent[] | undefined;
      for (const { subscriber, events } of offered) {
        if (!subscriber.wants(append.stream)) continue;
        recorded ??= recordedOf(append, createdText);
        for (const event of recorded) events.push(event);
      }
    }
    this.#position = last;
    for (const { subscriber, events } of offered) {
      this.#offer(subscriber, { events, upTo: last, error: undefined });
    }
  }

  /**
   * Another process may have committed.
   * @param upTo its last position; default: unknown. Up to there is read in the next turn of the event loop, after this
   *   process's earlier commits
   */
  noticed(upTo = Number.NaN): void {
    if (this.#subscribers.size === 0 || upTo <= this.#position) return;
    if (Number.isNaN(upTo)) this.#mayBeMore = true;
    else this.#announced = Math.max(this.#announced, upTo);
    if (this.#scheduled) return;
    if (this.#mayBeMore) this.#pump();
    else this.#pumpSoon();
  }

  /** Another process will send a notice within 100 ms. A hint, like all notices. */
  expectNotice(): void {
    this.#noPollBefore = performance.now() + NOTICE_DELAY_MS;
  }

  close(): void {
    for (const subscriber of [...this.#subscribers]) {
      this.leave(subscriber);
      subscriber.wake();
    }
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
      if (this.#subscribers.size > 0) this.#pump();
    });
  }

  /** @returns whether everything up to a position has been delivered; false where that is too much at once */
  #readUpTo(position: number): boolean {
    if (position <= this.#position || position - this.#position > MAX_EVENTS_READ_AHEAD_OF_COMMIT)
      return false;
    const page = this.#read(position);
    if (page !== undefined) this.#deliver(page);
    return this.#position === position && this.#subscribers.size > 0;
  }

  /** @returns whether the page held something new */
  #deliver(page: Page): boolean {
    // An unreadable event ends the subscribers that want it; all others skip it.
    const { unreadable, events } = page;
    const upTo = unreadable === undefined ? page.upTo : page.upTo + 1;
    if (upTo <= this.#position) return false;
    this.#position = upTo;
    for (const subscriber of [...this.#subscribers]) {
      const wanted =
        subscriber.prefixes === undefined
          ? events
          : events.filter(({ stream }) => subscriber.wants(stream));
      if (unreadable !== undefined && subscriber.wants(unreadable.stream)) {
        this.#offer(subscriber, { events: wanted, upTo: page.upTo, error: unreadable.error });
        this.leave(subscriber);
      } else {
        this.#offer(subscriber, { events: wanted, upTo, error: undefined });
      }
    }
    return true;
  }

  /** @param upTo default: the end of the log */
  #read(upTo: number | undefined): Page | undefined {
    try {
      const wants = (stream: string): boolean => this.#wants(stream);
      const page = this.#reader.page(this.#position, { wants, upTo });
      this.#telemetry.failures.worked(UNREADABLE);
      return page;
    } catch (error) {
      this.#failed(error);
      return undefined;
    }
  }

  #wants(stream: string): boolean {
    for (const subscriber of this.#subscribers) if (subscriber.wants(stream)) return true;
    return false;
  }

  #offer(subscriber: Subscriber, delivery: Delivery): void {
    subscriber.offer(delivery);
    if (!subscriber.live) this.leave(subscriber);
  }

  /** Logs an unreadable log once, and retries at the next poll. Any other error ends all subscribers. */
  #failed(cause: unknown): void {
    this.#seenVersion = undefined;
    if (cause instanceof EventStoreError && cause.code === 'UNAVAILABLE') {
      this.#telemetry.failures.failed(UNREADABLE, cause);
      return;
    }
    const error = cause instanceof Error ? cause : new Error(String(cause));
    for (const subscriber of [...this.#subscribers]) {
      this.#offer(subscriber, { events: [], upTo: this.#position, error });
      this.leave(subscriber);
    }
  }
}

/** Builds events with the same key order as those read from the file, so that V8 gives them one shape. */
function recordedOf(
  { stream, events, revision, position }: CommittedAppend,
  createdAt: string,
): readonly RecordedEvent[] {
  const recorded: RecordedEvent[] = [];
  const first = revision - events.length + 1;
  const firstPosition = position - events.length + 1;
  for (const [index, { id, type, data, metadata }] of events.entries()) {
    const at = first + index;
    const place = formatPosition(firstPosition + index);
    const event = { id, stream, revision: at, position: place, createdAt, type, data, metadata };
    recorded.push(event as RecordedEvent);
  }
  return recorded;
}
