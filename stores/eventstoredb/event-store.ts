import {
  BEGINNING,
  EventStoreError,
  sound,
  type AppendResult,
  type EventCodec,
  type EventStore,
  type ExpectedRevision,
  type Landmark,
  type NewEvent,
  type Position,
  type RecordedEvent,
  type StreamAppend,
  type StreamPage,
  type StreamPart,
  type SubscriptionMessage,
} from '../../domain/event-store.ts';
import type { StreamShare } from '../../domain/stream-share.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { Appending } from './appending.ts';
import { readConnectionUrl } from './connecting/connection-url.ts';
import { Connection } from './connecting/connection.ts';
import { Continuity } from './continuity.ts';
import { FeedConnections } from './connecting/feed-connections.ts';
import { Horizon } from './horizon.ts';
import { hasHad } from './landmark.ts';
import { isPosition } from './position.ts';
import { Reading } from './reading.ts';
import { isSystemEvent, toRaw } from './recorded.ts';
import { listStreams } from './stream-list.ts';
import { Subscription } from './subscription.ts';
import { defaultTimings, type Timings } from './connecting/timings.ts';
import { truncateStream } from './truncation.ts';

/** How many events of a stream are read where the caller says nothing. */
const DEFAULT_LIMIT = 1_000;

/**
 * Opens the event log in an EventStoreDB server or cluster. Sends nothing yet: a server that is away
 * shows in the first call, or in `ping`.
 *
 * @param options.url a connection string, `esdb://user:password@host:2113?tls=true`
 * @param options.timings see {@link Timings}; what is left out is as in production
 * @throws ConnectionUrlError when the connection string can't be meant so
 */
export function openEventStoreDb(options: {
  readonly url: string;
  readonly codec: EventCodec;
  readonly telemetry: Telemetry;
  readonly timings?: Partial<Timings>;
}): Promise<EventStore> {
  return Promise.resolve().then(() => {
    const settings = readConnectionUrl(options.url);
    const { telemetry, codec } = options;
    if (!settings.secure && settings.credentials !== undefined) {
      telemetry.log.warn(
        'EventStoreDB: user and password are not sent, as the connection string has tls=false',
      );
    }
    const timings = { ...defaultTimings, ...options.timings };
    const connection = new Connection(settings, timings, telemetry);
    const parts = { settings, telemetry, timings };
    const connections = new FeedConnections({ ...parts, first: connection });
    return new EventStoreDb({ connection, connections, codec, telemetry, timings });
  });
}

/** The port over EventStoreDB. */
class EventStoreDb implements EventStore {
  readonly #connection: Connection;
  readonly #connections: FeedConnections;
  readonly #codec: EventCodec;
  readonly #telemetry: Telemetry;
  readonly #timings: Timings;
  readonly #horizon = new Horizon();
  readonly #reading: Reading;
  readonly #continuity: Continuity;
  readonly #appending: Appending;
  readonly #closing = new AbortController();

  constructor(parts: {
    readonly connection: Connection;
    readonly connections: FeedConnections;
    readonly codec: EventCodec;
    readonly telemetry: Telemetry;
    readonly timings: Timings;
  }) {
    this.#connection = parts.connection;
    this.#connections = parts.connections;
    this.#codec = parts.codec;
    this.#telemetry = parts.telemetry;
    this.#timings = parts.timings;
    this.#reading = new Reading(parts.connection, parts.timings, this.#horizon);
    const shared = { ...parts, reading: this.#reading, horizon: this.#horizon };
    this.#continuity = new Continuity(shared);
    this.#appending = new Appending({ ...shared, continuity: this.#continuity });
  }

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    if (events.length === 0) {
      throw new EventStoreError('INVALID_EVENT', 'An append needs at least one event', { stream });
    }
    const encoded = events.map((event) => this.#codec.encode(event));
    return this.#appending.append(stream, encoded, expected);
  }

  async appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    const results: AppendResult[] = [];
    for (const { stream, events, expected } of appends) {
      results.push(await this.append(stream, events, expected));
    }
    return results;
  }

  async readStream(stream: string, part: StreamPart = {}): Promise<readonly RecordedEvent[]> {
    // The engine's own, with its users' passwords among them; no stream of this log is called so.
    if (stream.startsWith('$')) return [];
    const { from, direction = 'forwards', limit = DEFAULT_LIMIT, faulty } = part;
    const begin = from === undefined ? (direction === 'forwards' ? 'start' : 'end') : BigInt(from);
    const found = await this.#reading.stream(stream, begin, direction, limit);
    return found.map((event) => {
      const raw = toRaw(event);
      this.#horizon.note(raw.position);
      const decoded = this.#codec.decode(raw);
      return faulty === true ? decoded : sound(decoded);
    });
  }

  async readAll(after: Position, limit: number): Promise<readonly RecordedEvent[]> {
    const events: RecordedEvent[] = [];
    if (limit <= 0) return events;
    const raw: Parameters<EventCodec['decode']>[0][] = [];
    await this.#reading.forwards(after, limit, (event) => {
      if (!isSystemEvent(event)) raw.push(toRaw(event));
      return raw.length < limit ? 'more' : 'enough';
    });
    return raw.map((event) => this.#codec.decode(event));
  }

  async readAllBackwards(
    before: Position | null,
    limit: number,
  ): Promise<readonly RecordedEvent[]> {
    const events = await this.#reading.backwards(before, limit, (event) => !isSystemEvent(event));
    return events.map((event) => this.#codec.decode(toRaw(event)));
  }

  subscribe(options: {
    readonly after: Position;
    readonly prefixes?: readonly string[];
    readonly share?: StreamShare | undefined;
    readonly once?: boolean;
    readonly onPassed?: (position: Position) => void;
    readonly signal: AbortSignal;
  }): AsyncIterable<SubscriptionMessage> {
    const parts = {
      connections: this.#connections,
      reading: this.#reading,
      horizon: this.#horizon,
      continuity: this.#continuity,
      codec: this.#codec,
      timings: this.#timings,
      telemetry: this.#telemetry,
    };
    const signal = AbortSignal.any([options.signal, this.#closing.signal]);
    if (options.share !== undefined) throw new TypeError('a server does not share out its streams');
    return new Subscription(parts, { ...options, signal }).messages();
  }

  async listStreams(options: {
    readonly prefix: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<StreamPage> {
    return listStreams(this.#reading, options);
  }

  async truncate(stream: string, before: number): Promise<void> {
    await truncateStream(this.#reading, this.#appending, stream, before);
  }

  isPosition(text: string): boolean {
    return isPosition(text);
  }

  head(): Promise<Position> {
    return this.#reading.head();
  }

  async reaches(position: Position): Promise<boolean> {
    return position === BEGINNING || position <= (await this.#reading.end());
  }

  hasHad(landmark: Landmark): Promise<boolean> {
    return hasHad(this.#reading, landmark);
  }

  async ping(): Promise<void> {
    await this.#reading.end(this.#timings.pingMs);
    if (this.#continuity.fault !== undefined) throw this.#continuity.fault;
  }

  /** Waits for appends under way, ends subscriptions, reads and the connection. May be called again. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#appending.close();
    await this.#connections.close();
    await this.#connection.close();
  }
}
