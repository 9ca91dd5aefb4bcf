import type { DomainEvent } from './events/catalogue.ts';
import type { Metadata } from './events/metadata.ts';
import type { StreamShare } from './stream-share.ts';

/**
 * The event log's port. Two adapters implement it (`stores/sqlite`, `stores/eventstoredb`), and one
 * contract suite (`test/contracts/event-store.ts`) says what both must do.
 */
export interface EventStore {
  /**
   * Appends events to the end of one stream, all or none, durably: when this resolves they survive
   * a power cut.
   *
   * A repeated append of the same event ids with the same expectation is recognised and succeeds as a
   * `duplicate`, with the revision and position of the first.
   *
   * @throws EventStoreError `CONFLICT` when the stream is not where `expected` says, once what is in the way can be
   *   read; `TOO_LARGE` for an event over {@link MAX_EVENT_BYTES}; `OUTCOME_UNKNOWN` when the answer was lost (append
   *   again with the same ids and the same expectation; where `repeated` is set that has been done for some seconds);
   *   `UNAVAILABLE` when nothing was written.
   */
  append(
    stream: string,
    events: readonly NewEvent[],
    expected: ExpectedRevision,
  ): Promise<AppendResult>;

  /**
   * Several appends, each to its own stream, in order: a later one is tried only after the one before it
   * succeeded, and the first that fails ends the sequence with its error. Each is atomic by itself. An
   * engine may make one commit of all (then it is all or nothing), but no caller may rely on that.
   */
  appendInOrder(appends: readonly StreamAppend[]): Promise<readonly AppendResult[]>;

  /**
   * Checks and serialises events ahead, so that appending them later waits for less. Optional, and of no other effect.
   * They must not change any more, but for when they occur (`occurredAt`).
   * @throws EventStoreError `INVALID_EVENT`, as appending them would
   */
  prepare?(events: readonly NewEvent[]): void;

  /**
   * Does with appends all that `appendInOrder` would that leaves no trace: nothing is written, nobody sees them. For a
   * process that is about to append much for the first time, so that its code has been run by then. Optional; resolves
   * also where it could not be done.
   */
  rehearse?(appends: readonly StreamAppend[]): Promise<void>;

  /**
   * Makes ready on the disk what the first load would have to wait for. For a process that stays: it takes tens of
   * megabytes, a little at a time. Optional; resolves also where it could not be done.
   * @throws EventStoreError `UNAVAILABLE` when it is closed meanwhile
   */
  makeRoom?(): Promise<void>;

  /**
   * A page of one stream, ascending or descending by revision. A stream that does not exist, or that is
   * truncated away, is empty.
   *
   * @throws EventStoreError `CORRUPT_EVENT` when one does not fit its schema, `UNAVAILABLE`
   */
  readStream(stream: string, part?: StreamPart): Promise<readonly RecordedEvent[]>;

  /**
   * A page of the whole log, ascending, strictly after a position. Fewer than `limit` does not mean the
   * end; none does. Events that do not fit their schema come with `fault` set.
   */
  readAll(after: Position, limit: number): Promise<readonly RecordedEvent[]>;

  /**
   * A page of the whole log, descending, strictly before a position; null: from its end. Fewer than `limit` does not
   * mean the beginning; none does. Events that do not fit their schema come with `fault` set.
   */
  readAllBackwards(before: Position | null, limit: number): Promise<readonly RecordedEvent[]>;

  /**
   * Everything after a position, and everything that will come, in order, without gaps: never ends by
   * itself, comes back after a lost connection, and holds back the source while the consumer works.
   * Ends when the signal is aborted.
   *
   * @param options.after events strictly after this position
   * @param options.prefixes only streams whose names begin with one of these; default: all. What is left
   *   out still moves the position of `caught-up` forward.
   * @param options.share only one share of the streams; which streams are in which is the engine's, and stays so. Together
   *   with `once`; an engine that can't do so refuses it. Default: all
   * @param options.ahead whether more of the machine may be taken to come to the log's end sooner: an engine may read in
   *   a thread of its own, ahead of the consumer. Default: false
   * @param options.once whether the log is followed only up to where it ends: it then ends by itself, with a `caught-up`,
   *   and where it can't be read it does not wait for ever, but throws. Default: false
   * @param options.onPassed told now and then how far it has looked, where nothing stood that is wanted: of a part that is
   *   left out no message comes, however long it takes. Default: nobody is told
   * @throws EventStoreError `NEWER_SCHEMA` when it meets an event that this release does not know; `UNAVAILABLE` with
   *   `once`
   */
  subscribe(options: {
    readonly after: Position;
    readonly prefixes?: readonly string[];
    readonly share?: StreamShare | undefined;
    readonly ahead?: boolean;
    readonly once?: boolean;
    readonly onPassed?: (position: Position) => void;
    readonly signal: AbortSignal;
  }): AsyncIterable<SubscriptionMessage>;

  /**
   * A page of the streams whose names begin with a prefix and that have events, each once, in an order of the
   * engine's own. It looks at a bounded part of the log: a page may be short, or empty, and not be the last.
   *
   * An engine without an index of names finds a stream by its first event; one whose beginning was truncated and
   * cleaned away is not found there.
   *
   * @param options.after {@link StreamPage.next} of the page before; default: from the start
   * @throws EventStoreError `INVALID_EVENT` for an `after` that is none of this engine, `UNAVAILABLE`
   */
  listStreams(options: {
    readonly prefix: string;
    readonly after?: string;
    readonly limit: number;
  }): Promise<StreamPage>;

  /**
   * Forgets a stream's events before a revision, the oldest first: a death in the midst of it leaves the others. They may
   * stay in `readAll` until the engine cleans up.
   */
  truncate(stream: string, before: number): Promise<void>;

  /** Whether a text is a position as this log writes them, {@link BEGINNING} left out; it may lie beyond the end. */
  isPosition(text: string): boolean;

  /** The position of the last event of the log; {@link BEGINNING} when it is empty. */
  head(): Promise<Position>;

  /**
   * Whether the log has come as far as a position. What `subscribe` has told is always reached, also where it lies behind
   * the {@link head}, as the engine's own events do; what is not is of another log, or of what this one has lost.
   */
  reaches(position: Position): Promise<boolean>;

  /**
   * Whether the log has an event, or has had it: by that what was made of this log is told from what was made of another,
   * or of another state of it. True where the event was removed since, as its stream tells; false where another stands in
   * its place, and where its stream never came so far.
   */
  hasHad(landmark: Landmark): Promise<boolean>;

  /** Whether the log answers; resolves or throws `UNAVAILABLE`, within two seconds. */
  ping(): Promise<void>;

  close(): Promise<void>;
}

/** A place in the log. Opaque; of fixed width within an engine, so that it is ordered as text. */
export type Position = string;

/** Before every event. */
export const BEGINNING: Position = '';

/** No event may be larger, data and metadata together, so that all engines behave alike. */
export const MAX_EVENT_BYTES = 512 * 1024;

/** Where a stream must be: without events, at a revision (its last event's, from 0), or anywhere. */
export type ExpectedRevision = 'none' | 'any' | number;

/** An event about to be appended. Its id comes from the command, so that a retry is the same append. */
export type NewEvent = DomainEvent & {
  readonly id: string;
  readonly metadata: Metadata;
};

/** An event as it stands in the log. */
export type RecordedEvent = DomainEvent & {
  readonly id: string;
  readonly stream: string;
  /** Counts from 0 within the stream. */
  readonly revision: number;
  readonly position: Position;
  readonly metadata: Metadata;
  /** The store's own time; changes on import. What the service means by time is `metadata.occurredAt`. */
  readonly createdAt: string;
  /** Set where the data does not fit its schema; then `data` is what was found. */
  readonly fault?: string;
};

/**
 * What an event is recognised by. Its id comes from a command, which may be given again to a log that was put back: so
 * when it was written counts too.
 */
export type Landmark = Pick<RecordedEvent, 'stream' | 'revision' | 'id' | 'createdAt'>;

/** Which part of a stream is wanted. */
export interface StreamPart {
  /** Revision to begin with; default: the stream's first (last, when backwards). */
  readonly from?: number;
  readonly direction?: 'forwards' | 'backwards';
  /** Default 1,000. */
  readonly limit?: number;
  /**
   * Whether events that do not fit their schema come with `fault` set, for those who tell or take away what is there;
   * default: the page is refused, as no decision can rest on a part of it.
   */
  readonly faulty?: boolean;
}

/** A part of the streams of a log. */
export interface StreamPage {
  readonly streams: readonly StreamEnd[];
  /** Where to go on; null at the end. Opaque. */
  readonly next: string | null;
}

/** A stream, and where it ends. */
export interface StreamEnd {
  readonly stream: string;
  /** Of its last event. */
  readonly revision: number;
  /** When its last event occurred. */
  readonly lastAt: string;
}

export interface StreamAppend {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: ExpectedRevision;
  /**
   * Those who follow the log may hear of it up to 100 ms later: where many appends are on their way whose answers must
   * not be late, and those who follow would take the processor from them. An engine need not heed it. Default: false
   */
  readonly mayBeToldLater?: boolean;
}

export interface AppendResult {
  /** Of the last event appended. */
  readonly revision: number;
  /** Of the last event appended. */
  readonly position: Position;
  /** These events were there already. */
  readonly duplicate: boolean;
}

export type SubscriptionMessage =
  | { readonly kind: 'events'; readonly events: readonly RecordedEvent[] }
  /** All that was in the log up to this position has been delivered (or filtered out). */
  | { readonly kind: 'caught-up'; readonly position: Position };

/** What an engine's rows become, and what becomes a row: schemas are checked on both ways. */
export interface EventCodec {
  /**
   * Checks and serialises an event ahead, for {@link encode}. Optional. It must not change any more, but for when it
   * occurs (`occurredAt`).
   * @throws EventStoreError `INVALID_EVENT`
   */
  prepareEvent?(event: NewEvent): void;

  /**
   * Checks an event against its schema and serialises it.
   * @throws EventStoreError `TOO_LARGE`, or `INVALID_EVENT` for what JSON can't hold or the schema refuses
   */
  encode(event: NewEvent): EncodedEvent;

  /**
   * Parses, brings an older version up to the present one, and checks. Never throws for broken data: that
   * comes back with `fault` set.
   * @throws EventStoreError `NEWER_SCHEMA` for a type or version that this release does not know
   */
  decode(raw: RawEvent): RecordedEvent;

  /**
   * {@link decode} for an event whose texts have been parsed, with those of others at once. Optional.
   * @throws EventStoreError `NEWER_SCHEMA`
   */
  readonly decodeParsed?: (parsed: ParsedEvent) => RecordedEvent;
}

export interface EncodedEvent {
  readonly id: string;
  readonly type: string;
  /** JSON text. */
  readonly data: string;
  /** JSON text. */
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

/** The stable codes of what can go wrong with the log. */
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

/** A fault of the log, or of what was given to it. `CONFLICT` carries both revisions. */
export class EventStoreError extends Error {
  readonly code: EventStoreErrorCode;
  readonly stream: string | undefined;
  readonly expected: ExpectedRevision | undefined;
  /** Where the stream really was; `none` when it had no events. */
  readonly actual: number | 'none' | undefined;
  /** Of the event that can't be read; undefined where it is not about one. */
  readonly revision: number | undefined;
  /** Of an append: the log has repeated it by itself, for as long as it lets anybody wait. */
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

/**
 * An event that can be read.
 * @throws EventStoreError `CORRUPT_EVENT` for one that does not fit its schema
 */
export function sound(event: RecordedEvent): RecordedEvent {
  const { fault, stream, revision } = event;
  if (fault === undefined) return event;
  const text = `revision ${revision} of ${stream} does not fit its schema: ${fault}`;
  throw new EventStoreError('CORRUPT_EVENT', text, { stream, revision });
}

/** Whether an error is a lost race for a stream. */
export function isConflict(error: unknown): error is EventStoreError {
  return error instanceof EventStoreError && error.code === 'CONFLICT';
}
