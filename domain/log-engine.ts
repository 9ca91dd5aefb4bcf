import type { EventStore, Position, RecordedEvent } from './event-store.ts';
import type { StreamShare } from './stream-share.ts';

/**
 * The port of the engines that store the log (`stores/sqlite`, `stores/eventstoredb`): the operations of one engine.
 * The log's follower (`stores/following`) turns an engine into an {@link EventStore}. Methods with the same name mean
 * the same.
 */
export interface LogEngine extends Omit<EventStore, 'readAll' | 'subscribe'> {
  /**
   * A page of the whole log, ascending, strictly after a position. A short or empty page is not necessarily the last.
   * @throws EventStoreError `INVALID_EVENT` for a position of another engine; `UNAVAILABLE`
   */
  readPage(part: LogPart): Promise<LogPage>;

  /**
   * Reports everything that any process appends after the present end of the log, in order, without gaps or duplicates.
   * Reconnects by itself. At most one call at a time.
   *
   * @returns resolves when the signal is aborted
   * @throws EventStoreError if it cannot continue; the next call starts at the end of the log at that time
   */
  followEnd(listener: EndListener, signal: AbortSignal): Promise<void>;
}

/** Which part of the log to read. */
export interface LogPart {
  readonly after: Position;
  /** Only streams whose names begin with one of these; default: all. An engine may ignore it. */
  readonly prefixes?: readonly string[] | undefined;
  /** Only one share of the streams, by the engine's fixed division. An engine without shares rejects it. */
  readonly share?: StreamShare | undefined;
  /** The most entries; default: as many as the engine reads efficiently at once. */
  readonly limit?: number | undefined;
}

/** A piece of the log: everything between two positions that matches the request. */
export interface LogPiece {
  readonly entries: readonly LogEntry[];
  /** All events up to here are among the entries, or were filtered out. */
  readonly upTo: Position;
}

export interface LogPage extends LogPiece {
  /** Whether the log ended there when it was read. */
  readonly isLast: boolean;
  /** The prefixes that the entries are limited to; undefined: entries of all streams. */
  readonly prefixes: readonly string[] | undefined;
}

/** An event of a page. It is decoded when it is first needed, because most followers need few events. */
export interface LogEntry {
  readonly stream: string;
  readonly position: Position;
  /** Approximately how much memory it takes, in bytes. */
  readonly size: number;
  /** Whether the stream's name starts with one of these. Views ask one after the other with the same list. */
  isOf(prefixes: readonly string[]): boolean;
  /**
   * The event; one that does not fit its schema has `fault` set.
   * @throws EventStoreError `NEWER_SCHEMA` for an event that this release does not know
   */
  event(): RecordedEvent;
}

/** Receives the log's growth. Its methods return at once. */
export interface EndListener {
  /** Called first, with the end of the log. Everything that follows comes after this position. */
  begins(at: Position): void;
  /** Called with the next piece. It has no entries if only the position moves. */
  grows(piece: LogPiece): void;
}
