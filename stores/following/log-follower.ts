import {
  BEGINNING,
  EventStoreError,
  type EventStore,
  type Position,
  type SubscriptionMessage,
} from '../../domain/event-store.ts';
import type { LogEngine } from '../../domain/log-engine.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { pause, pauseAfter, unlessAborted } from '../waiting.ts';
import { LatestHead } from './latest-head.ts';
import { PastPages } from './past-pages.ts';
import { FollowerCursor } from './follower-cursor.ts';
import { RecentEvents, type WindowLimits } from './recent-events.ts';

/** The messages that report failures. */
const NO_HEAD = 'could not look up the end of the event log; retrying';
const NO_END = 'could not follow the end of the event log; retrying';

/** Milliseconds before a lookup or following the end of the log is retried: at first, and at most. */
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;

/** Limits of a follower's memory, in bytes. */
export interface FollowerLimits extends WindowLimits {
  /** Pages of the past that several followers read at the same time. */
  readonly past: number;
}

const MIB = 1024 * 1024;
export const defaultLimits: FollowerLimits = { kept: MIB / 8, most: 16 * MIB, past: 32 * MIB };

type SubscribeOptions = Parameters<EventStore['subscribe']>[0];

/**
 * The one reader of the log in a process. It receives the growing end of the log, keeps the latest part in memory (the
 * window), and passes it to any number of followers. Each follower has its own cursor. A follower that is behind the
 * window reads pages until it has reached the window. A follower that becomes too slow for the window reads pages
 * again, so it never delays the others.
 */
export class LogFollower {
  readonly #engine: LogEngine;
  readonly #telemetry: Telemetry;
  readonly #recent: RecentEvents;
  readonly #past: PastPages;
  readonly #head: LatestHead;
  readonly #closed = new AbortController();
  readonly #cursors = new Set<FollowerCursor>();
  #ended: Promise<void> | undefined;

  constructor(engine: LogEngine, telemetry: Telemetry, limits: FollowerLimits = defaultLimits) {
    this.#engine = engine;
    this.#telemetry = telemetry;
    this.#recent = new RecentEvents(limits);
    this.#past = new PastPages(engine, telemetry, limits.past);
    this.#head = new LatestHead(engine);
  }

  /** See {@link EventStore.subscribe}. */
  async *subscribe(
    options: SubscribeOptions,
  ): AsyncGenerator<SubscriptionMessage, void, undefined> {
    const { after, once = false } = options;
    if (options.share !== undefined && !once) {
      throw new TypeError('a share of the streams can only be read once, not followed');
    }
    if (after !== BEGINNING && !this.#engine.isPosition(after)) {
      throw new EventStoreError('INVALID_EVENT', `not a position of this log: '${after}'`);
    }
    if (options.signal.aborted) return;
    this.#requireOpen();
    if (once) yield* this.#readOnce(options);
    else yield* this.#follow(options);
  }

  /** Ends all followers. Resolves when nothing is read any more. */
  async close(): Promise<void> {
    this.#closed.abort();
    for (const cursor of this.#cursors) cursor.end();
    await this.#ended;
  }

  async *#readOnce(
    options: SubscribeOptions,
  ): AsyncGenerator<SubscriptionMessage, void, undefined> {
    const { after, prefixes, share, signal } = options;
    const cursor = new FollowerCursor(after, prefixes);
    while (!signal.aborted) {
      // Also between pages, so that reading a long log does not block the event loop.
      await new Promise<void>((resolve) => setImmediate(resolve));
      const page = await this.#engine.readPage({ after: cursor.position, prefixes, share });
      const { events, failure } = cursor.take(page, options.onPassed);
      if (events.length > 0) yield { kind: 'events', events };
      if (failure !== undefined) throw failure.error;
      if (!page.isLast || signal.aborted) continue;
      yield { kind: 'caught-up', position: cursor.position };
      return;
    }
  }

  async *#follow(options: SubscribeOptions): AsyncGenerator<SubscriptionMessage, void, undefined> {
    const { signal } = options;
    const cursor = new FollowerCursor(options.after, options.prefixes);
    /** The end of the log, looked up after the start. `caught-up` requires everything before it. */
    let end: Position | undefined;
    let looking = false;
    let announced: Position | undefined;
    this.#cursors.add(cursor);
    const stop = (): void => cursor.end();
    signal.addEventListener('abort', stop);
    this.#ended ??= this.#followEnd();
    const isLevel = (): boolean => end !== undefined && cursor.position >= end;
    try {
      while (!signal.aborted) {
        this.#requireOpen();
        // The first one is sent even if more events have arrived. Under load, more may always arrive.
        if (announced === undefined && isLevel()) {
          announced = cursor.position;
          yield { kind: 'caught-up', position: announced };
          continue;
        }
        if (!this.#recent.holds(cursor.position)) {
          const reading = this.#past.next(cursor, cursor.signal);
          const page = await unlessAborted(reading, cursor.signal);
          if (page === undefined) continue;
          if (page.isLast) end ??= page.upTo;
          const { events, failure } = cursor.take(page, options.onPassed);
          if (events.length > 0) yield { kind: 'events', events };
          if (failure !== undefined) throw failure.error;
          if (page.isLast && !this.#recent.holds(cursor.position))
            await this.#untilItBegins(cursor);
          continue;
        }
        this.#past.leave(cursor);
        if (end === undefined && !looking) {
          looking = true;
          void this.#lookUpHead(cursor.signal).then((head) => {
            end = head;
            cursor.wake();
          });
        }
        if (cursor.position < this.#recent.end) {
          const { events, failure } = cursor.take(
            this.#recent.after(cursor.position),
            options.onPassed,
          );
          if (events.length > 0) yield { kind: 'events', events };
          if (failure !== undefined) throw failure.error;
        } else if (announced !== cursor.position && isLevel()) {
          announced = cursor.position;
          yield { kind: 'caught-up', position: announced };
        } else {
          await cursor.wait();
        }
      }
    } finally {
      signal.removeEventListener('abort', stop);
      cursor.end();
      this.#cursors.delete(cursor);
      this.#past.leave(cursor);
    }
  }

  /** Waits for the window if the log has been read to an end that is not known here yet. */
  async #untilItBegins(cursor: FollowerCursor): Promise<void> {
    if (!this.#recent.hasBegun) return cursor.wait();
    // Another node of a cluster responded, and it is behind.
    await pause(FIRST_RETRY_MS, cursor.signal);
  }

  /** The head of the log; undefined if the follower ended first. */
  async #lookUpHead(signal: AbortSignal): Promise<Position | undefined> {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        const head = await this.#head.read();
        this.#telemetry.failures.worked(NO_HEAD);
        return head;
      } catch (error) {
        if (signal.aborted) return undefined;
        this.#telemetry.failures.failed(NO_HEAD, error);
        await pause(pauseAfter(failures, FIRST_RETRY_MS, MAX_RETRY_MS), signal);
      }
    }
    return undefined;
  }

  /** Receives the end of the log until the log is closed. */
  async #followEnd(): Promise<void> {
    const { signal } = this.#closed;
    const slowest = (): Position | undefined => this.#slowest();
    for (let failures = 0; !signal.aborted;) {
      try {
        await this.#engine.followEnd(
          {
            begins: (at) => {
              failures = 0;
              this.#telemetry.failures.worked(NO_END);
              this.#recent.restart(at);
              this.#wakeAll();
            },
            grows: (piece) => {
              this.#recent.add(piece, slowest);
              this.#wakeAll();
            },
          },
          signal,
        );
      } catch (error) {
        // Followers then read the log themselves, and meet the error if it persists.
        this.#recent.restart(null);
        this.#wakeAll();
        failures += 1;
        this.#telemetry.failures.failed(NO_END, error);
        await pause(pauseAfter(failures, FIRST_RETRY_MS, MAX_RETRY_MS), signal);
      }
    }
  }

  #slowest(): Position | undefined {
    let slowest: Position | undefined;
    for (const { position } of this.#cursors) {
      if (!this.#recent.holds(position)) continue;
      if (slowest === undefined || position < slowest) slowest = position;
    }
    return slowest;
  }

  #wakeAll(): void {
    for (const cursor of this.#cursors) cursor.wake();
  }

  #requireOpen(): void {
    if (!this.#closed.signal.aborted) return;
    throw new EventStoreError('UNAVAILABLE', 'the event log is closed');
  }
}
