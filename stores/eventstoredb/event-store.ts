import {
  BEGINNING,
  EventStoreError,
  requireReadable,
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
} from '../../domain/event-store.ts';
import type {
  EndListener,
  LogEngine,
  LogEntry,
  LogPage,
  LogPart,
} from '../../domain/log-engine.ts';
import type { Telemetry } from '../../observability/telemetry.ts';
import { followedLog } from '../following/followed-log.ts';
import type { FollowerLimits } from '../following/log-follower.ts';
import { Appender } from './appender.ts';
import { unusableError } from './connecting/condition.ts';
import { readConnectionUrl } from './connecting/connection-url.ts';
import { defaultTimings, type Timings } from './connecting/timings.ts';
import { hasHad } from './landmark.ts';
import { LogEnd } from './log-end.ts';
import { connectLog, type LogParts } from './log-parts.ts';
import { isPosition } from './position.ts';
import { entryOf, isSystemEvent, toRawEvent, type ClientEvent } from './client-event.ts';
import { listStreams } from './stream-list.ts';
import { truncateStream } from './truncation.ts';

/** Events of a stream that are read by default. */
const DEFAULT_LIMIT = 1_000;

/** Events in a page of the log, enough to make the time between two pages negligible. */
const PAGE = 2_000;

/**
 * Opens the event log in an EventStoreDB server or cluster. Sends nothing yet. An unreachable server is reported by the
 * first call, or by `ping`.
 * @param options.url a connection string, `esdb://user:password@host:2113?tls=true`
 * @param options.timings overrides the production timings
 * @param options.limits limits of its follower's memory; default: the limits of production
 * @throws ConnectionUrlError for an invalid connection string
 */
export async function openEventStoreDb(options: {
  readonly url: string;
  readonly codec: EventCodec;
  readonly telemetry: Telemetry;
  readonly timings?: Partial<Timings>;
  readonly limits?: FollowerLimits;
}): Promise<EventStore> {
  const settings = readConnectionUrl(options.url);
  const { telemetry, codec } = options;
  if (!settings.secure && settings.credentials !== undefined) {
    telemetry.log.warn(
      'EventStoreDB: the user and password are not sent, because the connection string has tls=false',
    );
  }
  const timings = { ...defaultTimings, ...options.timings };
  const log = connectLog(settings, timings, telemetry);
  return followedLog(new EventStoreDb(log, codec), telemetry, options.limits);
}

/** The event log's port for EventStoreDB. */
class EventStoreDb implements LogEngine {
  readonly #log: LogParts;
  readonly #codec: EventCodec;
  readonly #appender: Appender;

  constructor(log: LogParts, codec: EventCodec) {
    this.#log = log;
    this.#codec = codec;
    this.#appender = new Appender(log);
  }

  async append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult> {
    if (events.length === 0) {
      throw new EventStoreError('INVALID_EVENT', 'an append needs an event', { stream });
    }
    const encoded = events.map((event) => this.#codec.encode(event));
    return this.#appender.append(stream, encoded, expected);
  }

  async appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]> {
    const results: AppendResult[] = [];
    for (const { stream, events, expected } of appends) {
      results.push(await this.append(stream, events, expected));
    }
    return results;
  }

  async readStream(stream: string, part: StreamPart = {}): Promise<readonly RecordedEvent[]> {
    // Streams of the engine itself, which hold users' passwords among other things.
    if (stream.startsWith('$')) return [];
    const { from, direction = 'forwards', limit = DEFAULT_LIMIT, faulty } = part;
    const begin = from === undefined ? (direction === 'forwards' ? 'start' : 'end') : BigInt(from);
    const found = await this.#log.reader.stream(stream, begin, direction, limit);
    return found.map((event) => {
      const raw = toRawEvent(event);
      this.#log.highWaterMark.note(raw.position);
      const decoded = this.#codec.decode(raw);
      return faulty === true ? decoded : requireReadable(decoded);
    });
  }

  async readPage({ after, limit = PAGE, share }: LogPart): Promise<LogPage> {
    if (share !== undefined) throw new TypeError('EventStoreDB cannot share out streams');
    const { identity, reader } = this.#log;
    await identity.check();
    const entries: LogEntry[] = [];
    for (let from = after, size = limit; ; size = PAGE) {
      const { events, upTo, isLast } = await reader.page(from, size);
      for (const event of events) {
        if (!isSystemEvent(event) && entries.length < limit)
          entries.push(entryOf(event, this.#codec));
      }
      const isCut = entries.length >= limit;
      from = isCut ? (entries.at(-1)?.position ?? upTo) : upTo;
      if (entries.length > 0 || isLast) {
        return { entries, upTo: from, isLast: isLast && from === upTo, prefixes: undefined };
      }
    }
  }

  async readAllBackwards(
    before: Position | null,
    limit: number,
  ): Promise<readonly RecordedEvent[]> {
    const wants = (event: ClientEvent): boolean => !isSystemEvent(event);
    const events = await this.#log.reader.backwards(before, limit, wants);
    return events.map((event) => this.#codec.decode(toRawEvent(event)));
  }

  async followEnd(listener: EndListener, signal: AbortSignal): Promise<void> {
    await new LogEnd(this.#log, this.#codec, listener, signal).follow();
  }

  async listStreams(options: Parameters<EventStore['listStreams']>[0]): Promise<StreamPage> {
    return listStreams(this.#log.reader, options);
  }

  async truncate(stream: string, before: number): Promise<void> {
    await truncateStream(this.#log.reader, this.#appender, stream, before);
  }

  isPosition(text: string): boolean {
    return isPosition(text);
  }

  head(): Promise<Position> {
    return this.#log.reader.head();
  }

  async reaches(position: Position): Promise<boolean> {
    return position === BEGINNING || position <= (await this.#log.reader.end());
  }

  hasHad(landmark: Landmark): Promise<boolean> {
    return hasHad(this.#log.reader, landmark);
  }

  async ping(): Promise<void> {
    const { reader, timings, identity, server } = this.#log;
    await reader.end(timings.pingMs);
    if (identity.fault !== undefined) throw identity.fault;
    if (server.lasting !== null) throw unusableError(server.lasting);
  }

  /** Waits for running appends, then ends reads and the connection. Idempotent. */
  async close(): Promise<void> {
    await this.#appender.close();
    await this.#log.server.close();
    await this.#log.connection.close();
  }
}
