import type { DomainEvent } from './events/catalogue.ts';
import type { Metadata } from './events/metadata.ts';
import type { StreamShare } from './stream-share.ts';

/**
 * The event log's port. Two engines store it (`log-engine.ts`), and one follower in each process passes it to all
 * subscribers. One contract suite (`test/contracts/event-store.ts`) tests both.
 */
export interface EventStore {
  /**
   * Appends events to the end of one stream, all or none, durably: once this resolves they survive a power cut. A
   * repeated append of the same event ids with the same expectation succeeds as a `duplicate`, with the revision and
   * position of the first.
   *
   * @throws EventStoreError `CONFLICT` when the stream is not at `expected`, once the conflicting event can be read;
   *   `TOO_LARGE` for an event over {@link MAX_EVENT_BYTES}; `OUTCOME_UNKNOWN` when the response was lost (append again
   *   with the same ids and expectation; `repeated` means that this was tried for some seconds); `UNAVAILABLE` when
   *   nothing was written
   */
  append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult>;

  /**
   * Several appends in order, each to its own stream and each atomic: the first that fails ends the sequence with its
   * error. An engine may commit all of them at once; no caller may rely on that.
   */
  appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]>;

  /**
   * Validates and serialises events ahead of their append. Optional. Afterwards only their `occurredAt` may change.
   * @throws EventStoreError `INVALID_EVENT`, as the append would
   */
  prepare?(events: readonly NewEvent[]): void;

  /**
   * Runs the code of `appendInOrder` without writing anything, so that the code is compiled before the first large
   * load. Optional; resolves even if that was not possible.
   */
  rehearse?(appends: readonly StreamAppend[]): Promise<void>;

  /**
   * A page of one stream, by revision. A stream that does not exist, or is truncated, is empty.
   * @throws EventStoreError `CORRUPT_EVENT` for an event that does not fit its schema; `UNAVAILABLE`
   */
  readStream(stream: string, part?: StreamPart): Promise<readonly RecordedEvent[]>;

  /**
   * A page of the whole log, ascending, strictly after a position. Only an empty page means the end. Events that do not
   * fit their schema have `fault` set.
   */
  readAll(after: Position, limit: number): Promise<readonly RecordedEvent[]>;

  /** Like {@link readAll}, but descending, strictly before a position; null: from the end. */
  readAllBackwards(before: Position | null, limit: number): Promise<readonly RecordedEvent[]>;

  /**
   * Every event after a position, present and future, in order and without gaps. Never ends by itself, reconnects, and
   * applies back-pressure: a slow consumer delays no other. Ends when the signal is aborted. The process reads the log
   * only once for all subscriptions, and each takes recent events from memory.
   *
   * @param options.prefixes only streams whose names begin with one of these; default: all. Events of other streams
   *   still move the position of `caught-up` forward
   * @param options.share only one share of the streams, by a fixed division of the engine. Allowed only with `once`; an
   *   engine without shares rejects it. Default: all
   * @param options.once ends at the present end of the log, with a `caught-up`, and throws if the log cannot be read.
   *   Default: false
   * @param options.onPassed called now and then with the position reached while no requested event was found
   * @throws EventStoreError `NEWER_SCHEMA` for an event that this release does not know; `UNAVAILABLE` with `once`, and
   *   when the log is closed
   */
  subscribe(options: {
    readonly after: Position;
    readonly prefixes?: readonly string[];
    readonly share?: StreamShare | undefined;
    readonly once?: boolean;
    readonly onPassed?: (position: Position) => void;
    readonly signal: AbortSignal;
  }): AsyncIterable<SubscriptionMessage>;

  /**
   * A page of the streams that have events and whose names start with a prefix. Each stream is listed once, in the
   * engine's order. A page covers a bounded part of the log, so it may be short or empty without being the last. An
   * engine without an index of names misses a stream whose beginning was truncated and cleaned up.
   *
   * @param options.after {@link StreamPage.next} of the previous page; default: from the start
   * @throws EventStoreError `INVALID_EVENT` for an `after` of another engine; `UNAVAILABLE`
   */
  listStreams(options: {
    readonly prefix: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<StreamPage>;

  /**
   * Removes a stream's events before a revision, the oldest first. They may stay in `readAll` until the engine cleans up.
   */
  truncate(stream: string, before: number): Promise<void>;

  /**
   * Whether a string has the form of this log's positions ({@link BEGINNING} does not have it). The position may lie
   * beyond the end.
   */
  isPosition(text: string): boolean;

  /** The position of the last event; {@link BEGINNING} for an empty log. */
  head(): Promise<Position>;

  /**
   * Whether the log has reached a position. Positions that `subscribe` reported are always reached, even beyond {@link
   * head}. A position that is not reached belongs to another log, or to a part that this log has lost.
   */
  reaches(position: Position): Promise<boolean>;

  /**
   * Whether the log has an event, or had it before it was removed. Distinguishes this log from another log, or from
   * another state of this log. False if another event is in that place, or if the stream never had as many events.
   */
  hasHad(landmark: Landmark): Promise<boolean>;

  /** Resolves when the log answers within two seconds. @throws EventStoreError `UNAVAILABLE` */
  ping(): Promise<void>;

  close(): Promise<void>;
}

/** A place in the log. Opaque; of fixed width within an engine, so that positions are ordered as strings. */
export type Position = string;

/** The position before every event. */
export const BEGINNING: Position = '';

/** The largest event, data and metadata together: the same for all engines. */
export const MAX_EVENT_BYTES = 512 * 1024;

/** The expected state of a stream: without events, at a revision (of its last event, from 0), or any state. */
export type ExpectedRevision = 'none' | 'any' | number;

/** An event to append. Its id comes from the command, so that a retry is the same append. */
export type NewEvent = DomainEvent & {
  readonly id: string;
  readonly metadata: Metadata;
};

/** An event of the log. */
export type RecordedEvent = DomainEvent & {
  readonly id: string;
  readonly stream: string;
  /** Counts from 0 within the stream. */
  readonly revision: number;
  readonly position: Position;
  readonly metadata: Metadata;
  /** The store's own time; changes on import. All semantics use `metadata.occurredAt`. */
  readonly createdAt: string;
  /** Why the data does not fit its schema; `data` is then the invalid data. */
  readonly fault?: string;
};

/** Identifies an event. The time is part of it: a command may be repeated on a log restored from a backup. */
export type Landmark = Pick<RecordedEvent, 'stream' | 'revision' | 'id' | 'createdAt'>;

/** Which part of a stream to read. */
export interface StreamPart {
  /** First revision; default: the stream's first (backwards: its last). */
  readonly from?: number;
  readonly direction?: 'forwards' | 'backwards';
  /** Default 1,000. */
  readonly limit?: number;
  /**
   * Returns events that do not fit their schema with `fault` set; default: throws, because decisions need every event.
   */
  readonly faulty?: boolean;
}

/** A page of the streams of a log. */
export interface StreamPage {
  readonly streams: readonly StreamEnd[];
  /** The beginning of the next page; null at the end. Opaque. */
  readonly next: string | null;
}

/** A stream, and its last event. */
export interface StreamEnd {
  readonly stream: string;
  readonly revision: number;
  /** When the event occurred. */
  readonly lastAt: string;
}

export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision;
  /**
   * Followers of the log may be notified up to 100 ms later, so that they don't take the processor from many urgent
   * appends. An engine may ignore it. Default: false
   */
  readonly mayAnnounceLater?: boolean;
}

/** Revision and position are those of the last event appended. */
export interface AppendResult {
  readonly revision: number;
  readonly position: Position;
  /** The events had been appended before. */
  readonly duplicate: boolean;
}

export type SubscriptionMessage =
  | { readonly kind: 'events'; readonly events: readonly RecordedEvent[] }
  /** All events of the log up to this position were delivered or filtered out. */
  | { readonly kind: 'caught-up'; readonly position: Position };

/** Turns events into an engine's rows and back; validates both ways. */
export interface EventCodec {
  /**
   * Validates and serialises an event before {@link encode}. Optional. Afterwards only `occurredAt` may change.
   * @throws EventStoreError `INVALID_EVENT`
   */
  prepareEvent?(event: NewEvent): void;

  /**
   * @throws EventStoreError `TOO_LARGE`; `INVALID_EVENT` for values that JSON cannot hold or that the schema rejects
   */
  encode(event: NewEvent): EncodedEvent;

  /**
   * Parses an event, upcasts an older version, and validates it. Invalid data comes back with `fault` set.
   * @throws EventStoreError `NEWER_SCHEMA` for a type or version that this release does not know
   */
  decode(raw: RawEvent): RecordedEvent;

  /** {@link decode} for an event whose JSON was parsed already, together with others. Optional. */
  readonly decodeParsed?: (parsed: ParsedEvent) => RecordedEvent;
}

export interface EncodedEvent {
  readonly id: string;
  readonly type: string;
  /** JSON. */
  readonly data: string;
  /** JSON. */
  readonly metadata: string;
}

export interface RawEvent extends EncodedEvent {
  readonly stream: string;
  readonly revision: number;
  readonly position: Position;
  readonly createdAt: string;
}

export type ParsedEvent = Omit<RawEvent, 'data' | 'metadata'> & {
  readonly data: unknown;
  readonly metadata: unknown;
};

/** The stable codes of the log's errors. */
export const eventStoreErrorCodes = [
  'CONFLICT',
  'OUTCOME_UNKNOWN',
  'UNAVAILABLE',
  'TOO_LARGE',
  'STREAM_DELETED',
  'CORRUPT_EVENT',
  'INVALID_EVENT',
  'NEWER_SCHEMA',
] as const;
export type EventStoreErrorCode = (typeof eventStoreErrorCodes)[number];

/** An error of the log. `CONFLICT` carries both revisions. */
export class EventStoreError extends Error {
  readonly code: EventStoreErrorCode;
  readonly stream: string | undefined;
  readonly expected: ExpectedRevision | undefined;
  /** The actual revision of the stream; `none` if it had no events. */
  readonly actual: number | 'none' | undefined;
  /** The place of the event that cannot be read, if any. */
  readonly revision: number | undefined;
  /** Whether the log itself has repeated the append for its longest waiting time. */
  readonly repeated: boolean;

  constructor(
    code: EventStoreErrorCode,
    message: string,
    details: {
      readonly stream?: string;
      readonly expected?: ExpectedRevision;
      readonly actual?: number | 'none';
      readonly revision?: number;
      readonly repeated?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = 'EventStoreError';
    this.code = code;
    this.stream = details.stream;
    this.expected = details.expected;
    this.actual = details.actual;
    this.revision = details.revision;
    this.repeated = details.repeated ?? false;
  }
}

/** The event itself. @throws EventStoreError `CORRUPT_EVENT` if it does not fit its schema */
export function requireReadable(event: RecordedEvent): RecordedEvent {
  const { fault, stream, revision } = event;
  if (fault === undefined) return event;
  const message = `revision ${revision} of ${stream} does not fit its schema: ${fault}`;
  throw new EventStoreError('CORRUPT_EVENT', message, { stream, revision });
}

/** Whether an error is a lost race for a stream. */
export function isConflict(error: unknown): error is EventStoreError {
  return error instanceof EventStoreError && error.code === 'CONFLICT';
}
