import {
  EventStoreError,
  type EventCodec,
  type Position,
  type RecordedEvent,
  type SubscriptionMessage,
} from '../../domain/event-store.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import type { Continuity } from './continuity.ts';
import { wordsOf } from './connecting/faults.ts';
import type { FeedConnections } from './connecting/feed-connections.ts';
import { Feed } from './feed.ts';
import type { Horizon } from './horizon.ts';
import { pause, pauseAfter, unlessAborted } from './connecting/pause.ts';
import { later } from './position.ts';
import { Probe } from './probe.ts';
import type { Reading } from './reading.ts';
import { isSystemEvent, toRaw, type ClientEvent } from './recorded.ts';
import type { Timings } from './connecting/timings.ts';

/** Attempts one after the other by which nothing has come, when it is not to wait for ever. */
const MOST_FAILURES = 3;

/** What a subscription needs of the adapter. */
export interface SubscriptionParts {
  readonly connections: FeedConnections;
  readonly reading: Reading;
  readonly horizon: Horizon;
  readonly continuity: Continuity;
  readonly codec: EventCodec;
  readonly timings: Timings;
  readonly telemetry: Telemetry;
}

/**
 * Everything after a position, for ever: see the port's `subscribe`. Each of the client's
 * subscriptions that ends is followed by another, from the last event that the consumer has handled,
 * which is the last one it came back for.
 */
export class Subscription {
  readonly #parts: SubscriptionParts;
  readonly #prefixes: readonly string[] | undefined;
  readonly #once: boolean;
  readonly #onPassed: ((position: Position) => void) | undefined;
  readonly #signal: AbortSignal;
  #position: Position;
  /** Failed attempts since the last time something came through. */
  #failures = 0;

  constructor(
    parts: SubscriptionParts,
    options: {
      readonly after: Position;
      readonly prefixes?: readonly string[];
      readonly once?: boolean;
      readonly onPassed?: (position: Position) => void;
      readonly signal: AbortSignal;
    },
  ) {
    this.#parts = parts;
    this.#prefixes = options.prefixes;
    this.#once = options.once ?? false;
    this.#onPassed = options.onPassed;
    this.#signal = options.signal;
    this.#position = options.after;
  }

  async *messages(): AsyncGenerator<SubscriptionMessage, void, void> {
    const { timings, telemetry } = this.#parts;
    while (!this.#signal.aborted) {
      const reason = yield* this.#attempt();
      if (reason === undefined) return;
      this.#failures += 1;
      if (this.#once && this.#failures > MOST_FAILURES) {
        throw new EventStoreError('UNAVAILABLE', `the log can not be followed: ${reason}`);
      }
      telemetry.count('eventstore_resubscriptions_total');
      telemetry.log.warn('The subscription was lost and is made again', {
        reason,
        after: this.#position,
        failures: this.#failures,
      });
      await pause(
        pauseAfter(this.#failures, timings.firstPauseMs, timings.longestResubscribePauseMs),
        this.#signal,
      );
    }
  }

  /** One subscription of the client. Returns why it was lost, or nothing when it is to end. */
  async *#attempt(): AsyncGenerator<SubscriptionMessage, string | undefined, void> {
    const { connections, reading, continuity } = this.#parts;
    let places: readonly [Position, Position] | undefined;
    const look = async (): Promise<readonly [Position, Position]> => {
      await continuity.check();
      return Promise.all([reading.footing(this.#position), reading.end()]);
    };
    try {
      const read = look();
      places = await unlessAborted(read, this.#signal);
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'INVALID_EVENT') throw error;
      return wordsOf(error);
    }
    if (places === undefined) return undefined;
    const [from, end] = places;
    const { connection, release } = connections.take();
    const feed = new Feed(connection, from, end, this.#prefixes, () => continuity.doubt());
    const wake = (): void => feed.wake();
    this.#signal.addEventListener('abort', wake);
    try {
      return yield* this.#follow(feed, end);
    } finally {
      this.#signal.removeEventListener('abort', wake);
      feed.close();
      release();
    }
  }

  /** Passes on what one feed gives. Returns why it was lost, or nothing when it is to end. */
  async *#follow(
    feed: Feed,
    end: Position,
  ): AsyncGenerator<SubscriptionMessage, string | undefined, void> {
    const { reading, timings } = this.#parts;
    const probe = new Probe(reading, timings, { end, prefixes: this.#prefixes }, () => feed.wake());
    while (!this.#signal.aborted) {
      const taken = feed.take();
      if (taken.length > 0) {
        yield* this.#deliver(taken);
        probe.passed(this.#position);
        if (!probe.takeCaughtUp()) continue;
        yield { kind: 'caught-up', position: this.#position };
        if (this.#once) return undefined;
        continue;
      }
      const hint = feed.takeHint();
      if (hint !== undefined) this.#passTo(hint);
      if (feed.ended !== undefined) return feed.ended;

      const wait = probe.look(this.#position);
      if (probe.failure !== undefined) return wordsOf(probe.failure);
      if (probe.silent) return 'an event that is in the log did not come';
      this.#passTo(probe.nothingUpTo);
      if (probe.takeCaughtUp()) {
        this.#failures = 0;
        yield { kind: 'caught-up', position: this.#position };
        if (this.#once) return undefined;
        continue;
      }
      await feed.wait(wait);
    }
    return undefined;
  }

  /** Nothing that is wanted stands up to there. */
  #passTo(position: Position): void {
    const before = this.#position;
    this.#position = later(before, position);
    if (this.#position !== before) this.#onPassed?.(this.#position);
  }

  /** @throws EventStoreError `NEWER_SCHEMA`, after what came before that event */
  async *#deliver(taken: readonly ClientEvent[]): AsyncGenerator<SubscriptionMessage, void, void> {
    const events: RecordedEvent[] = [];
    let last = this.#position;
    let lastId = '';
    let failure: { readonly error: unknown } | undefined;
    for (const event of taken) {
      try {
        const raw = toRaw(event);
        // Never twice, whatever a server makes of "after".
        if (raw.position <= last) continue;
        if (!isSystemEvent(event)) events.push(this.#parts.codec.decode(raw));
        last = raw.position;
        lastId = event.id;
      } catch (error) {
        failure = { error };
        break;
      }
    }
    if (events.length > 0) yield { kind: 'events', events };
    this.#position = last;
    if (lastId !== '') this.#parts.horizon.noteEvent(last, lastId);
    this.#failures = 0;
    if (failure !== undefined) throw failure.error;
  }
}
