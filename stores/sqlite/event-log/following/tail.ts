import { EventStoreError, type RecordedEvent } from '../../../../domain/event-store.ts';
import type { Telemetry } from '../../../../observability/telemetry.ts';
import { formatPosition } from '../position.ts';
import type { LogReader, Page } from '../reading/reader.ts';
import type { Delivery, Subscriber } from './subscriber.ts';
import type { Committed, CommittedAppend } from '../writing/writer.ts';

/** Looks are left out for so long at most while this process writes itself, or another says that it will tell. Milliseconds. */
const MOST_LEFT_OUT = 500;
/** Who says that it will tell does so within this time. Milliseconds. */
const SOON = 100;
/** Others' events before a commit of this process that are read by themselves; more are read page by page, with it. */
const MOST_BEFORE_OWN = 500;

/**
 * The growing end of the log, which all live subscriptions of this process share: each event is read and
 * decoded once. What this process itself has appended is handed on as it is, without reading it again.
 */
export class Tail {
  readonly #reader: LogReader;
  readonly #telemetry: Telemetry;
  readonly #isWriting: () => boolean;
  readonly #lookEvery: number;
  readonly #subscribers = new Set<Subscriber>();
  /** Every live subscriber was offered all up to here. Without any, whatever the last commit was. */
  #position = 0;
  #seenVersion: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Looks that were left out, one after the other. */
  #leftOut = 0;
  /** The next page is to be read in the next turn of the event loop. */
  #scheduled = false;
  /** Another process has said that it has written up to here. */
  #toldOf = 0;
  /** Another process will tell of what it writes now: no need to look before then, by the monotonic clock. */
  #noLookBefore = 0;
  /** There may be more than anybody has told of. */
  #mayBeMore = false;
  #failing = false;

  /**
   * @param options.isWriting whether commits of this process are on their way here. While they are, the file is not
   *   read of its own accord: that would decode them a second time, and a commit of another process shows as a gap before
   *   them
   * @param options.lookEvery milliseconds between looks at the file, in case a notice of another process was lost. They
   *   are most of what an idle process does
   */
  constructor(
    reader: LogReader,
    options: {
      readonly telemetry: Telemetry;
      readonly isWriting: () => boolean;
      readonly lookEvery: number;
    },
  ) {
    this.#reader = reader;
    this.#telemetry = options.telemetry;
    this.#isWriting = options.isWriting;
    this.#lookEvery = options.lookEvery;
  }

  /**
   * Makes a subscriber live that has read the file to its end, if the tail is not further by now.
   *
   * @returns whether it is live; if not, it has to read on
   */
  join(subscriber: Subscriber): boolean {
    if (this.#subscribers.size === 0) {
      this.#position = Math.max(this.#position, subscriber.position);
    }
    if (subscriber.position < this.#position) return false;
    subscriber.live = true;
    this.#subscribers.add(subscriber);
    this.#timer ??= setInterval(() => this.#poll(), this.#lookEvery).unref();
    return true;
  }

  leave(subscriber: Subscriber): void {
    subscriber.live = false;
    this.#subscribers.delete(subscriber);
    if (this.#subscribers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Hands on what this process has committed. */
  committed({ first, last, createdAt, appends }: Committed): void {
    if (last <= this.#position) return;
    if (this.#subscribers.size === 0) {
      this.#position = last;
      return;
    }
    // Another process wrote before, and that must be delivered first.
    if (first !== this.#position + 1 && !this.#readUpTo(first - 1)) {
      this.noticed();
      return;
    }
    const createdText = this.#reader.createdAt(createdAt);
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
   * Something was, or may have been, committed by another process.
   *
   * @param upTo the last position of it, where that is said: a hint, of which nothing is expected. Up to there is read
   *   in the next turn of the event loop, as what this process has committed before is handed on until then, and what it
   *   commits behind comes by itself. Default: that is not known
   */
  noticed(upTo = Number.NaN): void {
    if (this.#subscribers.size === 0 || upTo <= this.#position) return;
    if (Number.isNaN(upTo)) this.#mayBeMore = true;
    else this.#toldOf = Math.max(this.#toldOf, upTo);
    if (this.#scheduled) return;
    if (this.#mayBeMore) this.#pump();
    else this.#pumpSoon();
  }

  /** Another process is writing, and will tell of it soon, up to 100 ms from now. A hint, as all it tells. */
  willBeNoticed(): void {
    this.#noLookBefore = performance.now() + SOON;
  }

  close(): void {
    for (const subscriber of [...this.#subscribers]) {
      this.leave(subscriber);
      subscriber.wake();
    }
  }

  #poll(): void {
    const isToldOf = this.#isWriting() || performance.now() < this.#noLookBefore;
    if (isToldOf && this.#leftOut * this.#lookEvery < MOST_LEFT_OUT) {
      this.#leftOut += 1;
      return;
    }
    this.#leftOut = 0;
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

  /** Reads one page, and goes on in another turn of the event loop while there is more. */
  #pump(): void {
    const all = this.#mayBeMore;
    const told = this.#toldOf;
    this.#mayBeMore = false;
    this.#toldOf = 0;
    if (!all && told <= this.#position) return;
    const page = this.#read(all ? undefined : told);
    if (page === undefined || !this.#deliver(page)) return;
    this.#mayBeMore = all;
    if (all || this.#position < told) {
      this.#toldOf = told;
      this.#pumpSoon();
    }
  }

  #pumpSoon(): void {
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      if (this.#mayBeMore && this.#isWriting()) {
        // What is left of it shows as a gap before what comes; or the next look finds it, should nothing come.
        this.#mayBeMore = false;
        this.#seenVersion = undefined;
      }
      if (this.#subscribers.size > 0) this.#pump();
    });
  }

  /** @returns whether all up to a position has been delivered now; not where that is much */
  #readUpTo(position: number): boolean {
    if (position <= this.#position || position - this.#position > MOST_BEFORE_OWN) return false;
    const page = this.#read(position);
    if (page !== undefined) this.#deliver(page);
    return this.#position === position && this.#subscribers.size > 0;
  }

  /** @returns whether there was something new in it */
  #deliver(page: Page): boolean {
    // An event that can't be known ends those who want it, and is passed by for all others.
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

  /** @param upTo default: the log's end */
  #read(upTo: number | undefined): Page | undefined {
    try {
      const wants = (stream: string): boolean => this.#wants(stream);
      const page = this.#reader.page(this.#position, { wants, upTo });
      this.#failing = false;
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

  /** A log that can't be read is said once, and the next poll tries again; all else ends everybody. */
  #failed(cause: unknown): void {
    this.#seenVersion = undefined;
    if (cause instanceof EventStoreError && cause.code === 'UNAVAILABLE') {
      if (!this.#failing) this.#telemetry.log.warn(cause.message);
      this.#failing = true;
      return;
    }
    const error = cause instanceof Error ? cause : new Error(String(cause));
    for (const subscriber of [...this.#subscribers]) {
      this.#offer(subscriber, { events: [], upTo: this.#position, error });
      this.leave(subscriber);
    }
  }
}

/** Written out, in the order of what is read from the file: all events are then of one shape to those who take them. */
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
