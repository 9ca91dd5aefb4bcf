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
import { Place } from './place.ts';
import { RecentEvents, type WindowLimits } from './recent-events.ts';

/** What failures are reported as. */
const NO_HEAD = 'could not look up the end of the event log; retrying';
const NO_END = 'could not follow the end of the event log; retrying';

/** Milliseconds before a lookup or the end of the log is tried again: at first, and at most. */
const FIRST_RETRY_MS = 50;
const MAX_RETRY_MS = 2_000;

/** Bounds of what a follower keeps in memory, in bytes. */
export interface FollowerLimits extends WindowLimits {
  /** Pages of the past that several followers read at the same time. */
  readonly past: number;
}

const MIB = 1024 * 1024;
export const defaultLimits: FollowerLimits = { kept: MIB / 8, most: 16 * MIB, past: 32 * MIB };

type SubscribeOptions = Parameters<EventStore['subscribe']>[0];

/**
 * The one reader of the log in a process. It receives the growing end of the log, keeps the latest of it in memory, and
 * hands it to any number of followers. Each of them has its own place. One that is further behind reads pages until it
 * has reached the window, and returns to that when it has become too slow. So it holds nobody back.
 */
export class LogFollower {
  readonly #engine: LogEngine;
  readonly #telemetry: Telemetry;
  readonly #recent: RecentEvents;
  readonly #past: PastPages;
  readonly #head: LatestHead;
  readonly #closed = new AbortController();
  readonly #places = new Set<Place>();
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
    for (const place of this.#places) place.end();
    await this.#ended;
  }

  async *#readOnce(
    options: SubscribeOptions,
  ): AsyncGenerator<SubscriptionMessage, void, undefined> {
    const { after, prefixes, share, signal } = options;
    const place = new Place(after, prefixes);
    while (!signal.aborted) {
      // Between pages too, so that reading a long log leaves the event loop to others.
      await new Promise<void>((resolve) => setImmediate(resolve));
      const page = await this.#engine.readPage({ after: place.position, prefixes, share });
      const { events, failure } = place.take(page, options.onPassed);
      if (events.length > 0) yield { kind: 'events', events };
      if (failure !== undefined) throw failure.error;
      if (!page.isLast || signal.aborted) continue;
      yield { kind: 'caught-up', position: place.position };
      return;
    }
  }

  async *#follow(options: SubscribeOptions): AsyncGenerator<SubscriptionMessage, void, undefined> {
    const { signal } = options;
    const place = new Place(options.after, options.prefixes);
    /** Where the log ended once this had begun: nothing before it may be missing from a `caught-up`. */
    let end: Position | undefined;
    let looking = false;
    let announced: Position | undefined;
    this.#places.add(place);
    const stop = (): void => place.end();
    signal.addEventListener('abort', stop);
    this.#ended ??= this.#followEnd();
    const isLevel = (): boolean => end !== undefined && place.position >= end;
    try {
      while (!signal.aborted) {
        this.#requireOpen();
        // The first time even if more has come meanwhile: under load, more may always have come.
        if (announced === undefined && isLevel()) {
          announced = place.position;
          yield { kind: 'caught-up', position: announced };
          continue;
        }
        if (!this.#recent.holds(place.position)) {
          const reading = this.#past.next(place, place.signal);
          const page = await unlessAborted(reading, place.signal);
          if (page === undefined) continue;
          if (page.isLast) end ??= page.upTo;
          const { events, failure } = place.take(page, options.onPassed);
          if (events.length > 0) yield { kind: 'events', events };
          if (failure !== undefined) throw failure.error;
          if (page.isLast && !this.#recent.holds(place.position)) await this.#untilItBegins(place);
          continue;
        }
        this.#past.leave(place);
        if (end === undefined && !looking) {
          looking = true;
          void this.#lookUpHead(place.signal).then((head) => {
            end = head;
            place.wake();
          });
        }
        if (place.position < this.#recent.end) {
          const { events, failure } = place.take(
            this.#recent.after(place.position),
            options.onPassed,
          );
          if (events.length > 0) yield { kind: 'events', events };
          if (failure !== undefined) throw failure.error;
        } else if (announced !== place.position && isLevel()) {
          announced = place.position;
          yield { kind: 'caught-up', position: announced };
        } else {
          await place.wait();
        }
      }
    } finally {
      signal.removeEventListener('abort', stop);
      place.end();
      this.#places.delete(place);
      this.#past.leave(place);
    }
  }

  /** Waits for the window where the log has been read to its end before that is known here. */
  async #untilItBegins(place: Place): Promise<void> {
    if (!this.#recent.hasBegun) return place.wait();
    // Another node of a cluster has answered, which is behind.
    await pause(FIRST_RETRY_MS, place.signal);
  }

  /** The head of the log; undefined where the follower ended first. */
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
        // Followers then read the log themselves, and find the error if it is there.
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
    for (const { position } of this.#places) {
      if (!this.#recent.holds(position)) continue;
      if (slowest === undefined || position < slowest) slowest = position;
    }
    return slowest;
  }

  #wakeAll(): void {
    for (const place of this.#places) place.wake();
  }

  #requireOpen(): void {
    if (!this.#closed.signal.aborted) return;
    throw new EventStoreError('UNAVAILABLE', 'the event log is closed');
  }
}
