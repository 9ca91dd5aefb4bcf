import {
  EventStoreError,
  type EventCodec,
  type Position,
  type RecordedEvent,
  type SubscriptionMessage,
} from '../../domain/event-store.ts';
import { pause, pauseAfter, unlessAborted } from '../waiting.ts';
import { describeError } from './connecting/client-errors.ts';
import type { FeedConnections } from './connecting/feed-connections.ts';
import { Feed } from './feed.ts';
import type { LogParts } from './log-parts.ts';
import { laterPosition } from './position.ts';
import { Probe } from './probe.ts';
import { isSystemEvent, toRawEvent, type ClientEvent } from './client-event.ts';

/** What is reported when a subscription has to be replaced. */
const LOST = 'subscription lost; subscribing again';

/** Consecutive fruitless attempts after which a `once` subscription fails. */
const MAX_FAILURES = 3;

/** What a subscription needs of the adapter. */
export interface SubscriptionParts extends LogParts {
  readonly connections: FeedConnections;
  readonly codec: EventCodec;
}

/**
 * Follows the log from a position, without end: see the port's `subscribe`. Each client subscription that ends is replaced
 * by another, from the last event that the consumer has handled.
 */
export class Subscription {
  readonly #parts: SubscriptionParts;
  readonly #prefixes: readonly string[] | undefined;
  readonly #once: boolean;
  readonly #onPassed: ((position: Position) => void) | undefined;
  readonly #signal: AbortSignal;
  #position: Position;
  /** Failed attempts since the last delivery. */
  #failures = 0;
  /** Of a read by which the last attempt failed. */
  #error: unknown;

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
      this.#error = undefined;
      const reason = yield* this.#attempt();
      if (reason === undefined) return;
      this.#failures += 1;
      if (this.#once && this.#failures > MAX_FAILURES) {
        const message = `the event log cannot be followed: ${reason}`;
        throw new EventStoreError('UNAVAILABLE', message, { cause: this.#error });
      }
      telemetry.count('eventstore_resubscriptions_total');
      // A read that failed has a reason of its own.
      const error = this.#error ?? new Error(reason);
      telemetry.failures.failed(LOST, error, { after: this.#position });
      await pause(
        pauseAfter(this.#failures, timings.firstPauseMs, timings.longestResubscribePauseMs),
        this.#signal,
      );
    }
  }

  /** One client subscription. Returns why it was lost, or undefined when it is to end. */
  async *#attempt(): AsyncGenerator<SubscriptionMessage, string | undefined, void> {
    const { connections, reader, identity } = this.#parts;
    let places: readonly [Position, Position] | undefined;
    const look = async (): Promise<readonly [Position, Position]> => {
      await identity.check();
      return Promise.all([reader.subscribablePosition(this.#position), reader.end()]);
    };
    try {
      const read = look();
      places = await unlessAborted(read, this.#signal);
    } catch (error) {
      if (error instanceof EventStoreError && error.code === 'INVALID_EVENT') throw error;
      this.#error = error;
      return describeError(error);
    }
    if (places === undefined) return undefined;
    const [from, end] = places;
    const { connection, release } = connections.take();
    const feed = new Feed(connection, from, end, this.#prefixes, () => identity.connectionLost());
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

  /** Delivers what one feed receives. Returns why it was lost, or undefined when it is to end. */
  async *#follow(
    feed: Feed,
    end: Position,
  ): AsyncGenerator<SubscriptionMessage, string | undefined, void> {
    const { reader, timings } = this.#parts;
    const probe = new Probe(reader, timings, { end, prefixes: this.#prefixes }, () => feed.wake());
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
      if (probe.failure !== undefined) {
        this.#error = probe.failure;
        return describeError(probe.failure);
      }
      if (probe.silent) return 'an event of the log did not arrive';
      this.#passTo(probe.nothingUpTo);
      if (probe.takeCaughtUp()) {
        this.#isAlive();
        yield { kind: 'caught-up', position: this.#position };
        if (this.#once) return undefined;
        continue;
      }
      await feed.wait(wait);
    }
    return undefined;
  }

  /** The client's subscription works. */
  #isAlive(): void {
    if (this.#failures > 0) this.#parts.telemetry.failures.worked(LOST);
    this.#failures = 0;
  }

  /** Moves on past events that are not wanted. */
  #passTo(position: Position): void {
    const before = this.#position;
    this.#position = laterPosition(before, position);
    if (this.#position !== before) this.#onPassed?.(this.#position);
  }

  /** @throws EventStoreError `NEWER_SCHEMA`, after the events before that one */
  async *#deliver(taken: readonly ClientEvent[]): AsyncGenerator<SubscriptionMessage, void, void> {
    const events: RecordedEvent[] = [];
    let last = this.#position;
    let lastId = '';
    let failure: { readonly error: unknown } | undefined;
    for (const event of taken) {
      try {
        const raw = toRawEvent(event);
        // Never twice, whatever the server takes "after" to mean.
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
    if (lastId !== '') this.#parts.highWaterMark.noteEvent(last, lastId);
    this.#isAlive();
    if (failure !== undefined) throw failure.error;
  }
}
