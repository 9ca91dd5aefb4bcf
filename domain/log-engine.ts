import type { EventStore, Position, RecordedEvent } from './event-store.ts';
import type { StreamShare } from './stream-share.ts';

/**
 * The port of the engines that store the log (`stores/sqlite`, `stores/eventstoredb`): what each can do by itself. The
 * log's follower (`stores/following`) makes an {@link EventStore} of it. The methods that both have mean the same.
 */
export interface LogEngine extends Omit<EventStore, 'readAll' | 'subscribe'> {
  /**
   * A page of the whole log, ascending, strictly after a position. It may be short, or empty, and not be the last.
   * @throws EventStoreError `INVALID_EVENT` for a position of another engine; `UNAVAILABLE`
   */
  readPage(part: LogPart): Promise<LogPage>;

  /**
   * Reports what is appended, by any process, from the present end of the log on: in order, without gaps, and never an
   * event twice. Reconnects by itself. At most one call at a time.
   *
   * @returns resolves when the signal is aborted
   * @throws EventStoreError where it cannot continue; the next call begins at the end as it is then
   */
  followEnd(listener: EndListener, signal: AbortSignal): Promise<void>;
}

/** Which part of the log to read. */
export interface LogPart {
  readonly after: Position;
  /** Only streams whose names begin with one of these; default: all. An engine may ignore it. */
  readonly prefixes?: readonly string[] | undefined;
  /** Only one share of the streams, by a fixed division of the engine's. An engine without shares rejects it. */
  readonly share?: StreamShare | undefined;
  /** Entries at most; default: as many as the engine reads well at once. */
  readonly limit?: number | undefined;
}

/** A piece of the log: everything between two positions, except what was not asked for. */
export interface LogPiece {
  readonly entries: readonly LogEntry[];
  /** Everything up to here is among the entries, or was filtered out. */
  readonly upTo: Position;
}

export interface LogPage extends LogPiece {
  /** Whether the log ended there when it was read. */
  readonly isLast: boolean;
  /** The prefixes to which the entries are limited; undefined: they are of all streams. */
  readonly prefixes: readonly string[] | undefined;
}

/** An event of a page, decoded when it is first wanted: most followers want few. */
export interface LogEntry {
  readonly stream: string;
  readonly position: Position;
  /** About how much memory it takes, in bytes. */
  readonly size: number;
  /** Whether the stream's name begins with one of these. Views ask with the same list, one after the other. */
  isOf(prefixes: readonly string[]): boolean;
  /**
   * The event; one that does not fit its schema has `fault` set.
   * @throws EventStoreError `NEWER_SCHEMA` for an event that this release does not know
   */
  event(): RecordedEvent;
}

/** Receives the log's growth. Its methods return at once. */
export interface EndListener {
  /** Called first: what follows comes after this position, the end of the log. */
  begins(at: Position): void;
  /** Called with what comes next; without entries where only the position moves. */
  grows(piece: LogPiece): void;
}
